%% What a real Erlang node does with a Magpie node (the example `peer`): each step says `ok NAME`, or ends everything with a status that is not zero.
-module(scenario).
-export([main/1, terms/1]).

main(["failover" | Nodes]) ->
    try failover([list_to_atom(Node) || Node <- Nodes]) of
        ok -> io:format("ok failover~n"), halt(0)
    catch
        Class:Why:Trace -> io:format("FAILED ~p: ~p~n~p~n", [Class, Why, Trace]), halt(1)
    end;
main([Node | Steps]) ->
    N = list_to_atom(Node),
    try
        [begin step(list_to_atom(Step), N), io:format("ok ~s~n", [Step]) end || Step <- Steps],
        halt(0)
    catch
        Class:Why:Trace ->
            io:format("FAILED ~p: ~p~n~p~n", [Class, Why, Trace]),
            halt(1)
    end.

step(ping, N) ->
    pong = net_adm:ping(N),
    true = lists:member(N, nodes(hidden)),
    false = lists:member(N, nodes());
step(calls, N) ->
    [T = gen_server:call({echo, N}, T, 30000) || T <- terms(1)],
    ok;
step(by_pid, N) ->
    Pid = rpc:call(N, erlang, whereis, [echo]),
    true = is_pid(Pid) andalso node(Pid) =:= N,
    hello = gen_server:call(Pid, hello, 30000),
    undefined = rpc:call(N, erlang, whereis, [nobody]),
    undefined = rpc:call(N, erlang, whereis, [hidden_name]);
step(casts, N) ->
    Before = gen_server:call({slow, N}, 0, 30000),
    [gen_server:cast({slow, N}, 0) || _ <- lists:seq(1, 50)],
    [{slow, N} ! 0 || _ <- lists:seq(1, 50)],
    After = gen_server:call({slow, N}, 0, 30000),
    101 = After - Before;
step(crash, N) ->
    Pid = whereis_alive(N, 100),
    Ref = monitor(process, {crasher, N}),
    gen_server:cast({crasher, N}, {crash, <<"by cast">>}),
    receive {'DOWN', Ref, process, {crasher, N}, {crashed, <<"by cast">>}} -> ok after 20000 -> error(no_down) end,
    %% One that is started anew has another pid, and the old one is nobody's.
    New = whereis_alive(N, 100),
    true = New =/= Pid,
    Old = monitor(process, Pid),
    receive {'DOWN', Old, process, Pid, noproc} -> ok after 20000 -> error(no_down) end,
    {{crashed, <<"by call">>}, _} = (catch exit_of(fun() -> gen_server:call({crasher, N}, {crash, <<"by call">>}, 20000) end)),
    ok = call_until(N, 100);
step(links, N) ->
    process_flag(trap_exit, true),
    Pid = whereis_alive(N, 100),
    link(Pid),
    gen_server:cast(Pid, {crash, <<"linked">>}),
    receive {'EXIT', Pid, {crashed, <<"linked">>}} -> ok after 20000 -> error(no_exit) end,
    %% And the other way: whoever may be ended from outside is, when one that is linked to it fails.
    Next = whereis_alive(N, 100),
    Ref = monitor(process, Next),
    spawn(fun() -> link(Next), ok = gen_server:call(Next, nothing, 20000), exit(failed) end),
    receive {'DOWN', Ref, process, Next, killed} -> ok after 20000 -> error(no_down) end,
    Again = whereis_alive(N, 100),
    Other = monitor(process, Again),
    exit(Again, kill),
    receive {'DOWN', Other, process, Again, killed} -> ok after 20000 -> error(no_down) end,
    %% One that may not be ended from outside lives on.
    Echo = rpc:call(N, erlang, whereis, [echo]),
    exit(Echo, kill),
    still = gen_server:call(Echo, still, 20000),
    unlink(Echo),
    ok = call_until(N, 100);
step(functions, N) ->
    5 = rpc:call(N, test, add, [2, 3]),
    -70000000000 = rpc:call(N, test, add, [-70000000001, 1]),
    true = length(rpc:call(N, magpie, load, [])) >= 1,
    #{core := 0, running_permille := _} = rpc:call(N, magpie, load, [0]),
    undefined = rpc:call(N, magpie, load, [1000]),
    true = lists:keymember('sched.slice_us', 1, rpc:call(N, magpie, settings, [])),
    true = rpc:call(N, magpie, processes, []) > 3,
    {badrpc, {'EXIT', {undef, _}}} = rpc:call(N, test, nothing, []),
    {badrpc, {'EXIT', {undef, _}}} = rpc:call(N, test, add, [a, b]),
    {badrpc, {'EXIT', {undef, _}}} = rpc:call(N, os, cmd, ["true"]),
    {badrpc, {'EXIT', _}} = rpc:call(N, test, crash, [<<"in a function">>]),
    [#{message := <<"in a function">>} | _] = lists:reverse(rpc:call(N, magpie, crashes, [])),
    5 = erpc:call(N, test, add, [2, 3]);
step(shapes, N) ->
    {error, {badarg, Text}} = gen_server:call({slow, N}, {not_a, number}, 20000),
    true = is_binary(Text),
    {error, {badarg, _}} = gen_server:call({slow, N}, -1, 20000),
    [{slow, N} ! T || T <- terms(2)],
    true = is_integer(gen_server:call({slow, N}, 0, 20000));
step(nobody, N) ->
    {noproc, _} = (catch exit_of(fun() -> gen_server:call({nobody, N}, hello, 20000) end)),
    Ref = monitor(process, {nobody, N}),
    receive {'DOWN', Ref, process, _, noproc} -> ok after 20000 -> error(no_down) end,
    {nobody, N} ! hello,
    %% It does not start processes for others.
    {'EXIT', {notsup, _}} = (catch erpc_spawn(N));
step(many, N) ->
    Me = self(),
    Callers = [spawn_link(fun() ->
        [begin K = {C, I}, K = gen_server:call({echo, N}, K, 60000), Me ! called end || I <- lists:seq(1, 50)]
    end) || C <- lists:seq(1, 64)],
    %% Over a serial line all of them take long; each has a minute after the one before.
    [receive called -> ok after 60000 -> error(stuck) end || _ <- Callers, _ <- lists:seq(1, 50)];
step(long, N) ->
    long(N, 1000000, 3000000);
step(rather_long, N) ->
    %% For a serial line, where a frame may be shorter.
    long(N, 100000, 300000);
step(full, N) ->
    %% More than its mailbox takes, faster than it works: nothing is lost.
    Before = gen_server:call({slow, N}, 0, 30000),
    [gen_server:cast({slow, N}, 200) || _ <- lists:seq(1, 2000)],
    2001 = gen_server:call({slow, N}, 0, 60000) - Before;
step(reconnect, N) ->
    pong = net_adm:ping(N),
    true = erlang:disconnect_node(N),
    there = gen_server:call({echo, N}, there, 20000);
step(cookie, N) ->
    pong = net_adm:ping(N),
    true = erlang:disconnect_node(N),
    erlang:set_cookie(N, wrong),
    pang = net_adm:ping(N),
    erlang:set_cookie(N, erlang:get_cookie()),
    pong = net_adm:ping(N);
step(serve, _) ->
    serve();
step(idle, N) ->
    %% Nothing is said for many times as long as a connection may be silent.
    pong = net_adm:ping(N),
    true = monitor_node(N, true),
    {ok, [[Seconds]]} = init:get_argument(idle),
    receive {nodedown, N} -> error(nodedown) after 1000 * list_to_integer(Seconds) -> ok end,
    there = gen_server:call({echo, N}, there, 20000);
step(down, N) ->
    %% Whoever runs this ends the Magpie node now.
    Ref = monitor(process, {echo, N}),
    here = gen_server:call({echo, N}, here, 20000),
    io:format("ready~n"),
    receive {'DOWN', Ref, process, _, noconnection} -> ok after 90000 -> error(no_down) end.

%% As long as an answer may be, and longer: that ends the connection, which comes again by itself.
long(N, Most, TooMuch) ->
    Bytes = binary:copy(<<7>>, Most),
    Bytes = gen_server:call({echo, N}, Bytes, 60000),
    {{nodedown, N}, _} = (catch exit_of(fun() -> gen_server:call({echo, N}, binary:copy(<<7>>, TooMuch), 60000) end)),
    again = gen_server:call({echo, N}, again, 60000).

%% Works with the first node until that goes, then with the second, without a call that is lost.
failover([First, Second]) ->
    Ref = monitor(process, {echo, First}),
    pong = net_adm:ping(Second),
    io:format("working~n"),
    Done = work_until(Ref, First, 0),
    io:format("took over after ~p calls~n", [Done]),
    [I = gen_server:call({echo, Second}, I, 20000) || I <- lists:seq(1, 100)],
    ok.

work_until(Ref, Node, Done) ->
    receive {'DOWN', Ref, process, _, noconnection} -> Done
    after 0 ->
        try gen_server:call({echo, Node}, Done, 60000) of
            Done -> work_until(Ref, Node, Done + 1)
        catch
            exit:{{nodedown, Node}, _} ->
                receive {'DOWN', Ref, process, _, noconnection} -> Done after 20000 -> error(no_down) end
        end
    end.

exit_of(F) -> try F() catch exit:Why -> throw_exit(Why) end.
throw_exit({Why, {gen_server, call, _} = Where}) -> throw({Why, Where});
throw_exit(Why) -> throw({Why, none}).

erpc_spawn(N) ->
    Pid = spawn(N, fun() -> ok end),
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, Why} -> exit({notsup, Why}) after 20000 -> error(no_down) end.

whereis_alive(N, Tries) ->
    case rpc:call(N, erlang, whereis, [crasher]) of
        undefined when Tries > 0 -> timer:sleep(50), whereis_alive(N, Tries - 1);
        Pid when is_pid(Pid) -> Pid
    end.

call_until(N, Tries) ->
    try gen_server:call({crasher, N}, nothing, 20000)
    catch exit:_ when Tries > 0 -> timer:sleep(50), call_until(N, Tries - 1)
    end.

%% Terms of every kind. Which, the seed says.
terms(Seed) ->
    rand:seed(exsss, Seed),
    [0, 1, -1, 255, 256, 1 bsl 31, -(1 bsl 31) - 1, 1 bsl 63, 1 bsl 64, -(1 bsl 200), 1 bsl 3000, 0.0, -1.5e300, a, 'ä', '', <<>>, <<1, 2>>, <<5:3>>,
     "", "text", [1 | 2], [[]], {}, {a}, #{}, #{a => 1, "k" => [2.0]}, self(), make_ref(), fun lists:map/2, fun() -> ok end,
     list_to_tuple(lists:seq(1, 300)), lists:seq(1, 300), binary:copy(<<"x">>, 70000)]
    ++ [term(6) || _ <- lists:seq(1, 200)].

term(0) -> rand:uniform(1000) - 500;
term(Depth) ->
    Some = fun() -> [term(Depth - 1) || _ <- lists:seq(1, rand:uniform(4))] end,
    case rand:uniform(9) of
        1 -> rand:uniform(1 bsl 100) - (1 bsl 99);
        2 -> rand:normal() * 1.0e10;
        3 -> list_to_atom([$a + rand:uniform(20) || _ <- lists:seq(1, rand:uniform(9))]);
        4 -> rand:bytes(rand:uniform(40));
        5 -> Some();
        6 -> list_to_tuple(Some());
        7 -> maps:from_list([{term(Depth - 1), X} || X <- Some()]);
        8 -> [X rem 256 || X <- lists:seq(1, rand:uniform(20))];
        9 -> term(0)
    end.

%% The process `there` that a Magpie node talks with.
serve() ->
    register(there, spawn(fun() -> there([]) end)),
    register(left, spawn(fun() -> receive _ -> io:format("left is told~n"), halt(0) end end)),
    io:format("serving~n"),
    receive after 120000 -> error(nobody_came) end.

there(Kept) -> there(Kept, 0).

there(Kept, Padded) ->
    receive
        {'$gen_cast', {pad, <<_:1000/binary>>}} -> there(Kept, Padded + 1);
        {'$gen_call', From, padded} -> gen_server:reply(From, Padded), there(Kept, Padded);
        {'$gen_call', From, {echo, A, B, C}} -> gen_server:reply(From, {A, B, C}), there(Kept);
        {'$gen_call', From, kept} -> gen_server:reply(From, lists:reverse(Kept)), there(Kept);
        {'$gen_call', _, silence} -> there(Kept);
        {'$gen_call', _, {'end', Why}} -> exit(Why);
        {'$gen_cast', {keep, X}} -> there([X | Kept]);
        {keep, X} -> there([X | Kept])
    end.
