#!/usr/bin/env escript
%% Terms both ways: what the other side sends is read and written again; then terms of our own go there, are read and written, and
%% come back.
main([Port, Count]) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, list_to_integer(Port), [binary, {packet, 4}, {active, false}]),
    theirs(Socket),
    rand:seed(exsss, {1, 2, 3}),
    ours(Socket, list_to_integer(Count)).

theirs(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, <<"done">>} -> ok;
        {ok, Bytes} ->
            Term = binary_to_term(Bytes),
            ok = gen_tcp:send(Socket, term_to_binary(Term, [{minor_version, 2}])),
            theirs(Socket)
    end.

ours(Socket, 0) ->
    ok = gen_tcp:send(Socket, <<"done">>);
ours(Socket, Left) ->
    Term = any(5),
    Minor = rand:uniform(3) - 1,
    Bytes = term_to_binary(Term, [{minor_version, Minor}]),
    ok = gen_tcp:send(Socket, Bytes),
    {ok, Back} = gen_tcp:recv(Socket, 0),
    Term = binary_to_term(Back),
    case Minor of
        %% Before OTP 27 ports begin with 89, an older form.
        2 -> case binary:match(Bytes, <<89>>) of nomatch -> Bytes = Back; _ -> ok end;
        _ -> ok
    end,
    ours(Socket, Left - 1).

any(Depth) ->
    case rand:uniform(case Depth of 0 -> 14; _ -> 19 end) of
        1 -> rand:uniform(600) - 300;
        2 -> (rand:uniform(1 bsl 32) - (1 bsl 31)) bsl rand:uniform(40);
        3 -> -(rand:uniform(1 bsl 62) bsl rand:uniform(4000));
        4 -> rand:uniform(1 bsl 62) bsl rand:uniform(4000);
        5 -> rand:normal() * math:pow(10, rand:uniform(600) - 300);
        6 -> atom([$a, $Z, $_, $@, 32, 233, 255]);
        7 -> atom([$a, 955, 28450, 128512]);
        8 -> list_to_binary([rand:uniform(256) - 1 || _ <- some(40)]);
        9 -> Bits = rand:uniform(7), Bytes = list_to_binary([rand:uniform(256) - 1 || _ <- some(10)]),
             <<Bytes/binary, 1:Bits>>;
        10 -> [rand:uniform(256) - 1 || _ <- some(40)];
        11 -> self();
        12 -> make_ref();
        13 -> hd(erlang:ports());
        14 -> lists:nth(rand:uniform(4), [fun lists:map/2, [], {}, #{}]);
        15 -> list_to_tuple([any(Depth - 1) || _ <- some(case rand:uniform(50) of 1 -> 300; _ -> 5 end)]);
        16 -> [any(Depth - 1) || _ <- some(5)];
        17 -> [any(Depth - 1), any(Depth - 1) | improper];
        18 -> maps:from_list([{any(Depth - 1), any(Depth - 1)} || _ <- some(case rand:uniform(20) of 1 -> 40; _ -> 4 end)]);
        19 -> X = any(Depth - 1), fun(Y) -> {X, Y} end
    end.

some(Most) -> lists:seq(1, rand:uniform(Most + 1) - 1).

atom(Letters) ->
    Most = case rand:uniform(20) of 1 -> 255; _ -> 10 end,
    list_to_atom([lists:nth(rand:uniform(length(Letters)), Letters) || _ <- some(Most)]).
