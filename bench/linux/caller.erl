%% Calls `echo` of another node, from the host, and says how fast that was. The same module for every node that is called.
%%
%%   erl -noshell -name ... -run caller main NODE ALONE TOGETHER
%%
%% ALONE calls by one process, one after the other: p50 and p99. Then TOGETHER calls by 64 processes at once: calls a second. What is asked is a tuple with a
%% number and 64 bytes, and has to come back so.
-module(caller).
-export([main/1]).

-define(CALLERS, 64).

main([Node, Alone, Together]) ->
    Echo = {echo, list_to_atom(Node)},
    true = net_kernel:connect_node(list_to_atom(Node)),
    alone(Echo, list_to_integer(Alone)),
    together(Echo, list_to_integer(Together) div ?CALLERS),
    halt().

call(Echo, Number) ->
    What = {question, Number, <<Number:512>>},
    What = gen_server:call(Echo, What, 60000).

%% In nanoseconds.
timed(What) ->
    Begin = erlang:monotonic_time(nanosecond),
    What(),
    erlang:monotonic_time(nanosecond) - Begin.

alone(Echo, Count) ->
    %% The first ones are for the emulator, which translates the code then.
    [call(Echo, Number) || Number <- lists:seq(1, Count div 5)],
    Took = lists:sort([timed(fun() -> call(Echo, Number) end) || Number <- lists:seq(1, Count)]),
    io:format("call_p50_us ~.1f~n", [lists:nth(Count div 2, Took) / 1000]),
    io:format("call_p99_us ~.1f~n", [lists:nth(Count - Count div 100, Took) / 1000]).

together(Echo, Each) ->
    all(Echo, Each div 5),
    io:format("calls_per_s ~w~n", [round(?CALLERS * Each / timed(fun() -> all(Echo, Each) end) * 1.0e9)]).

all(Echo, Each) ->
    Callers = [spawn_monitor(fun() -> [call(Echo, Number) || Number <- lists:seq(1, Each)] end) || _ <- lists:seq(1, ?CALLERS)],
    [receive {'DOWN', Monitor, process, _, Why} -> normal = Why end || {_, Monitor} <- Callers].
