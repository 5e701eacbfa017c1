%% The gen_server `echo` of the BEAM node in the Linux guest: answers with what it was asked. Magpie's example `peer` has an actor of that name that does the same.
-module(callee).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2]).

main() ->
    {ok, _} = gen_server:start({local, echo}, ?MODULE, [], []),
    io:format("~s is up~n", [node()]).

init([]) -> {ok, nothing}.

handle_call(What, _, State) -> {reply, What, State}.

handle_cast(_, State) -> {noreply, State}.
