%% An application that hands work to a Magpie board: counts the primes below a number on all its workers, and goes on when one of them crashes.
%%
%%     cargo xtask qemu cluster --smp 4 --net --forward 127.0.0.2:4369:4369 --forward 127.0.0.2:9100:9100 --append node=magpie@127.0.0.2
%%     erlc examples/cluster/cluster.erl
%%     ERL_EPMD_ADDRESS=127.0.0.1 erl -noshell -name boss@127.0.0.1 -setcookie magpie -run cluster main magpie@127.0.0.2 4 200000

-module(cluster).
-export([main/1]).

main([Node, Workers, Most]) ->
    work(list_to_atom(Node), list_to_integer(Workers), list_to_integer(Most)),
    halt(0).

work(Node, Workers, Most) ->
    pong = net_adm:ping(Node),
    io:format("~p is there; its cores: ~p~n", [Node, length(rpc:call(Node, magpie, load, []))]),
    %% More jobs than workers, so that none waits for the slowest.
    Jobs = 8 * Workers,
    Step = Most div Jobs + 1,
    Ranges = [{From, min(From + Step, Most)} || From <- lists:seq(0, Most - 1, Step)],
    Keys = [job({worker(I rem Workers), Node}, Range)
            || {I, Range} <- lists:zip(lists:seq(0, length(Ranges) - 1), Ranges)],
    %% One crashes in the middle of it: its jobs are asked for again.
    gen_server:cast({worker(0), Node}, crash),
    Sum = lists:sum([result(Key) || Key <- Keys]),
    io:format("~p primes below ~p~n", [Sum, Most]).

worker(I) -> list_to_atom("worker" ++ integer_to_list(I)).

%% A job, by a process of its own, until it is done.
job(Worker, Range) ->
    Boss = self(),
    Key = make_ref(),
    spawn_link(fun() -> Boss ! {Key, ask(Worker, Range, 20)} end),
    Key.

ask(Worker, {From, To} = Range, Tries) ->
    try gen_server:call(Worker, {primes, From, To}, 60000)
    catch
        exit:Why when Tries > 0 ->
            io:format("~p: ~p; again~n", [element(1, Worker), element(1, Why)]),
            timer:sleep(100),
            ask(Worker, Range, Tries - 1)
    end.

result(Key) -> receive {Key, Count} -> Count end.
