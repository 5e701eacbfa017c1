#!/usr/bin/env escript
%%! -name a@127.0.0.1 -setcookie secret -start_epmd false -kernel net_ticktime 4
%% What an Erlang node does with a node on the other side: `main` with what is to be tried.
main(["inward"]) ->
    M = 'magpie@127.0.0.2',
    register(shell, self()),
    pong = net_adm:ping(M),
    pong = net_adm:ping(M),
    [M] = nodes(hidden),
    by_name(M),
    echoes(M),
    monitors(M),
    links(M),
    functions(M),
    outward(M),
    silence(M),
    true = erlang:disconnect_node(M),
    [] = nodes(hidden),
    %% And again.
    pong = net_adm:ping(M),
    6 = gen_server:call({counter, M}, {add, 0}),
    true = erlang:disconnect_node(M);
main(["cookie"]) ->
    M = 'magpie@127.0.0.2',
    pang = net_adm:ping(M),
    erlang:set_cookie(M, other),
    pong = net_adm:ping(M);
main(["huge"]) ->
    M = 'magpie@127.0.0.2',
    pong = net_adm:ping(M),
    erlang:monitor_node(M, true),
    {counter, M} ! binary:copy(<<0>>, 2000000),
    receive {nodedown, M} -> ok after 5000 -> error(still_up) end;
main(["called"]) ->
    register(shell, self()),
    io:format("ready~n"),
    receive {'$gen_call', From, {twice, X}} -> gen_server:reply(From, 2 * X) after 10000 -> error(nobody) end,
    receive goodbye -> ok after 10000 -> error(no_goodbye) end,
    timer:sleep(100).

by_name(M) ->
    {counter, M} ! {hello, self()},
    Self = self(),
    {echo, {hello, Self}} = next(),
    5 = gen_server:call({counter, M}, {add, 5}),
    ok = gen_server:cast({counter, M}, {add, 1}),
    6 = gen_server:call({counter, M}, {add, 0}),
    Pid = gen_server:call({counter, M}, where),
    M = node(Pid),
    6 = gen_server:call(Pid, {add, 0}),
    Pid ! {again, self()},
    {echo, {again, Self}} = next(),
    {error, <<"an atom that means nothing here">>} = gen_server:call(Pid, {subtract, 1}),
    {'EXIT', {noproc, _}} = (catch gen_server:call({nobody, M}, hello)),
    %% Nobody answers: the caller gives up.
    {'EXIT', {timeout, _}} = (catch gen_server:call({net_kernel, M}, hello, 100)).

echoes(M) ->
    [T = gen_server:call({counter, M}, {echo, T}) || T <- [
        1, -1, 1 bsl 70, 1.5, <<>>, <<1:3>>, "text", [a | b], {}, {{{}}}, #{}, #{a => #{b => c}}, self(), make_ref(),
        fun lists:map/2, lists:seq(1, 1000), lists:seq(1, 70000), binary:copy(<<7>>, 300000),
        list_to_atom([955, 956]), list_to_atom([233])]].

monitors(M) ->
    Pid = gen_server:call({counter, M}, where),
    R1 = monitor(process, {counter, M}),
    R2 = monitor(process, Pid),
    R3 = monitor(process, {counter, M}),
    true = demonitor(R3),
    {'EXIT', {{badmatch, 7}, _}} = (catch gen_server:call({counter, M}, {crash, {badmatch, 7}})),
    receive {'DOWN', R1, process, {counter, M}, {badmatch, 7}} -> ok after 2000 -> error(no_down) end,
    receive {'DOWN', R2, process, Pid, {badmatch, 7}} -> ok after 2000 -> error(no_down) end,
    R4 = monitor(process, {nobody, M}),
    receive {'DOWN', R4, process, {nobody, M}, noproc} -> ok after 2000 -> error(no_down) end,
    nothing().

links(M) ->
    process_flag(trap_exit, true),
    Pid = gen_server:call({counter, M}, where),
    link(Pid),
    unlink(Pid),
    6 = gen_server:call(Pid, {add, 0}),
    catch gen_server:call(Pid, {crash, unheard}),
    nothing(),
    link(Pid),
    catch gen_server:call(Pid, {crash, heard}),
    receive {'EXIT', Pid, heard} -> ok after 2000 -> error(no_exit) end,
    exit(Pid, please),
    nothing(),
    process_flag(trap_exit, false).

functions(M) ->
    {load, [1, two]} = rpc:call(M, magpie, load, [1, two]),
    {load, []} = erpc:call(M, magpie, load, []),
    {badrpc, {'EXIT', {undef, _}}} = rpc:call(M, lists, seq, [1, 2]),
    thrown = (catch erpc:call(M, magpie, throw, [])),
    ok = erpc:cast(M, magpie, note, [1]),
    R = spawn_request(M, lists, seq, [1, 2], [monitor]),
    receive {spawn_reply, R, error, notsup} -> ok after 2000 -> error(no_reply) end,
    nothing().

%% What the other side does of its own accord, because it is asked to.
outward(M) ->
    ok = gen_server:call({counter, M}, {call, shell, {twice, 21}}),
    receive {'$gen_call', From, {twice, X}} -> gen_server:reply(From, 2 * X) after 2000 -> error(no_call) end,
    {replied, 42} = next(),
    ok = gen_server:call({counter, M}, {call, nobody, hello}),
    {failed, noproc} = next(),
    Pid = spawn(fun() -> receive die -> exit(died) end end),
    ok = gen_server:call({counter, M}, {watch, Pid}),
    ok = gen_server:call({counter, M}, {link, Pid}),
    Pid ! die,
    [{heard_down, died}, {heard_exit, died}] = lists:sort([next(), next()]),
    %% One that is gone already.
    ok = gen_server:call({counter, M}, {watch, Pid}),
    {heard_down, noproc} = next(),
    ok = gen_server:call({counter, M}, {link, Pid}),
    {heard_exit, noproc} = next(),
    Other = spawn(fun() -> receive die -> exit(died) end end),
    ok = gen_server:call({counter, M}, {link, Other}),
    ok = gen_server:call({counter, M}, {unlink, Other}),
    R = monitor(process, Other),
    ok = gen_server:call({counter, M}, {stop, Other, asked}),
    receive {'DOWN', R, process, Other, asked} -> ok after 2000 -> error(no_down) end,
    nothing().

%% Longer than both sides' limit for silence.
silence(M) ->
    erlang:monitor_node(M, true),
    receive {nodedown, M} -> error(down) after 6500 -> ok end,
    erlang:monitor_node(M, false),
    6 = gen_server:call({counter, M}, {add, 0}).

next() -> receive X -> X after 2000 -> error(nothing_came) end.
nothing() -> receive X -> error({came, X}) after 50 -> ok end.
