/*
 * The hand: mail that a worker has in hand, from the message that gets there to its delivery here or elsewhere.
 *
 * Cores, each with a worker but perhaps the last. A behaviour begins on core 0; it, those that it sends to, and a client that
 * goes from core to core send a few messages. One turn at a time may become endless, and may end after all: then no stack is
 * lent, and what waits must leave. A behaviour may be suspended once: then its activation goes on as a process of its own, and its
 * actor's messages go to the side queue. The last core may go out of service, if it has no worker.
 *
 * Models: in actor/mail hand.rs and mailbox/{taking,holding}.rs; actor/send.rs; in actor/run
 * worker/{run_list,gulping,turn,hosting,surplus}.rs, executor_state.rs, detach.rs, side_queue.rs; arch/gate.rs, as one step each;
 * in sched run/slice.rs and run/preempt.rs, when a turn lets go.
 *
 * Not here: how an idle core announces itself, dozes, watches and is woken, and the four steps of a swap with what follows: a
 * core with nothing to run finds the next at once, and a mailbox moves to its thief's range in one step. That is modelled in
 * mail.pml, and for processes in processes.pml. Nor the instructions that append (arch/aarch64/append.rs says why they are one
 * step), nor passes: which of those that wait comes next is open, which is more than the worker does.
 *
 * A step is what lies between two accesses to what others write, so sequential consistency is assumed. A mailbox's gate, what
 * lies in hand, and a worker's lists belong to one core.
 *
 * Time, as in mail.pml: who looks at mail notes it; a later look may find the note old, and must if a slice's second look came
 * between.
 *
 * Left out: pinned mailboxes, bounds, crashes, more than one executor, segments that have grown. A mailbox whose batch an
 * endless turn has in hand, or keeps from its worker's next turn, waits for the end of that turn, so it is not asked for: in the
 * kernel a stack is lent after two slices. Where a worker looks for a surplus, half of what is listed leaves: with two mailboxes
 * that is none.
 *
 * THERE_AND_BACK lets the behaviours of each mailbox send to the other one. NO_CLIENT leaves out the client. RESTS begins in the
 * middle of a turn of which mailbox 1 rests in hand. SHARE has the worker look for a surplus, which puts down what rests.
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef CORES
#define CORES WORKERS
#endif
/* Messages that are sent, but for the first. */
#ifndef MESSAGES
#define MESSAGES 2
#endif
/* Appends for which there is no room, and mailboxes that cannot be taken in hand for want of a segment. */
#ifndef FAILURES
#define FAILURES 0
#endif
/* Turns that become endless. */
#ifndef HOGS
#define HOGS 1
#endif
/* Behaviours that are suspended. */
#ifndef SPLITS
#define SPLITS 0
#endif
/* Turns that are over because their reductions are used up. */
#ifndef TIRED
#define TIRED 0
#endif
/* Whose the mailbox 1 is; 0 is worker 0's. */
#ifndef OWNER
#define OWNER 1
#endif
/* The mailbox that is followed. */
#ifndef TRACK
#define TRACK 1
#endif
/* Where the client begins. */
#ifndef CLIENT_ON
#define CLIENT_ON (CORES - 1)
#endif
#define MAIL 2
#define BIT(n) (1 << (n))

/* What waits in a core's queue. */
#define WORKER 0
#define CLIENT 1
#define ACTIVATION 2

/* A worker's process. */
#define WAITS 0
#define QUEUED 1
#define RUNNING 2
#define NOTIFIED 3

/* Who is told of mail. */
#define NOBODY 0
#define WHOEVER_MAY 1		/* as of mail that has just come */
#define THE_OWNER 2

/* A gate. */
#define CLOSED 0
#define OPEN 1
#define AT_REST 2

/* Mailboxes. */
byte waiting[MAIL];		/* in the queue */
byte held[MAIL];		/* in hand */
bit locked[MAIL];
bit processed[MAIL];
byte gate[MAIL];
byte holder[MAIL];		/* whose core the gate is open for */
bit noted[MAIL];
bit guest[MAIL];
byte seen[MAIL];		/* 0: not noted; 1: noted; 2: noted long ago */
byte owner[MAIL];
byte moves[MAIL];

/* Workers. */
chan listed[CORES] = [MAIL] of { byte };
chan guests[CORES] = [MAIL] of { byte };
byte resting[CORES];
byte batch[CORES];		/* the mailbox and one, or 0 */
byte hints[CORES];
byte round[CORES];
bit idle[CORES];
byte turn[CORES];

/* Cores. */
chan queue[CORES] = [3] of { byte };
bit busy[CORES];
bit called[CORES];
bit out_of_service;		/* the last core is */

/* The suspended behaviour: its mailbox and one, or 0; and its side queue. */
byte aside;
byte side;
byte side_of;			/* whose it is, also when the actor is back */

/* The course of events. */
byte left_to_send = MESSAGES;
byte left_to_fail = FAILURES;
byte left_to_hog = HOGS;
byte left_to_split = SPLITS;
byte left_to_tire = TIRED;
bit hogs;			/* an endless turn goes on */
byte hog_core;
byte hog_kind;
bit client_gone;

#define is_idle(d) (!busy[d] && len(queue[d]) == 0)
#if CORES > 2
#define some_idle (is_idle(0) || is_idle(1) || is_idle(2) && !out_of_service)
#else
#define some_idle (is_idle(0) || is_idle(1))
#endif

/* ---- time ---- */

inline note_old(m, yes) {
	if
	:: seen[m] == 0 -> seen[m] = 1; yes = 0
	:: seen[m] == 1 -> yes = 0
	:: seen[m] < 2 -> seen[m] = 2; yes = 1
	:: seen[m] == 2 -> yes = 1
	fi
}

/* ---- looks: one step each ---- */

inline may_leave(m, yes) {
	atomic {
		if
		:: waiting[m] && !processed[m] -> note_old(m, yes)
		:: else -> yes = 0
		fi
	}
}

inline is_ripe(m, yes) {
	atomic {
		if
		:: owner[m] == c && waiting[m] && !processed[m] && !guest[m] -> yes = 1
		:: owner[m] == c && waiting[m] && !processed[m] && guest[m] -> note_old(m, yes)
		:: else -> yes = 0
		fi
	}
}

/* Sets `any`. */
inline any_ripe() {
	atomic {
		is_ripe(0, any);
		is_ripe(1, yes);
		any = any || yes;
		yes = 0
	}
}

/* ---- waking ---- */

inline wake_worker(w) {
	atomic {
		if
		:: turn[w] == WAITS -> turn[w] = QUEUED; queue[w] ! WORKER
		:: turn[w] == RUNNING -> turn[w] = NOTIFIED
		:: else
		fi
	}
}

inline wake_if_idle(w) {
	atomic {
		yes = idle[w];
		idle[w] = 0
	}
	if
	:: yes -> wake_worker(w)
	:: else
	fi
}

inline wake_thief() {
	atomic {
		if
		:: is_idle(0) -> called[0] = 1
		:: else ->
			if
			:: is_idle(1) -> called[1] = 1
#if CORES > 2
			:: !is_idle(1) && is_idle(2) && !out_of_service -> called[2] = 1
#endif
			:: else
			fi
		fi
	}
}

/* ---- telling of mail ---- */

inline go_home(m) {
	atomic { hints[p] = hints[p] | BIT(m) }
	wake_if_idle(p)
}

#define has_other_work(w) (round[w] != 0 || hints[w] != 0 || len(listed[w]) > 0 || len(guests[w]) > 0)

inline notify(m) {
	atomic {
		yes = processed[m];
		p = owner[m]
	}
	if
	:: yes
	:: else ->
		if
		:: !idle[p] -> atomic { hints[p] = hints[p] | BIT(m) }
		:: else ->
			if
			:: p == c || c >= WORKERS || has_other_work(c) -> go_home(m)
			:: p != c && c < WORKERS ->
				atomic {
					yes = !guest[m];
					guest[m] = 1;
					if
					:: yes ->
						assert(!(guests[0] ?? [eval(m)]) && !(guests[1] ?? [eval(m)]));
						guests[c] ! m
					:: else
					fi
				}
				if
				:: yes -> wake_if_idle(c)
				:: else
				fi
			fi
		fi
	fi;
	atomic { p = 0; yes = 0 }
}

inline send_home(m) {
	p = owner[m];
	go_home(m);
	atomic { p = 0; yes = 0 }
}

/* ---- the hand ---- */

/* It becomes listed in this core's hand. */
inline list(m) {
	assert(!(listed[0] ?? [eval(m)]) && !(listed[1] ?? [eval(m)]));
	seen[m] = 0;
	gate[m] = OPEN;
	listed[c] ! m
}

inline take(m) {
	assert(!processed[m] && gate[m] == CLOSED);
	/* It may be at rest in this hand only. */
	assert(!noted[m] || resting[c] & BIT(m));
	processed[m] = 1;
	holder[m] = c;
	moves[m] = 0
}

/* A message for n, from code on this core: a behaviour in the worker's turn, or another process. */
inline send(n, behaves) {
	atomic {
		/* What waits is looked at; the rest is this core's. */
		yes = 0;
		if
		:: waiting[n] == 0 && gate[n] != CLOSED && holder[n] == c ->
			held[n]++;
			yes = 1;
			if
			:: gate[n] == AT_REST ->
#ifdef MUTANT_rest_not_told
				skip
#else
				list(n)
#endif
			:: else
			fi
		:: waiting[n] == 0 && gate[n] != CLOSED && holder[n] == c && left_to_fail > 0 -> left_to_fail--
		:: else
		fi
	}
	if
	:: yes
	:: else ->
		atomic {
			!locked[n] ->
			locked[n] = 1;
			if
			:: waiting[n] > 0 -> waiting[n]++; locked[n] = 0; yes = 1
			:: else
			fi
		}
		if
		:: yes
		:: else ->
			/* The first: is it taken in hand? */
			atomic { yes = behaves && (owner[n] == c || idle[owner[n]]) }
			atomic {
				if
				:: yes && left_to_fail > 0 -> left_to_fail--; yes = 0
				:: yes && !processed[n] ->
					take(n);
					held[n] = 1;
					list(n);
					locked[n] = 0
				:: !yes || processed[n] -> yes = 0
				fi;
				if
				:: !yes ->
					waiting[n] = 1;
					seen[n] = 0;
#ifndef MUTANT_full_rest_not_told
					if
					:: gate[n] == AT_REST && holder[n] == c -> list(n); locked[n] = 0; yes = 1
					:: else
					fi
#endif
				:: else
				fi
			}
			if
			:: yes
			:: else ->
				notify(n);
				locked[n] = 0
			fi
		fi
	fi;
	atomic { n = 0; yes = 0 }
}

/* What rests in hand is put down, and those are told that mail has come for. */
inline put_resting_down(who) {
	do
	:: atomic { resting[c] != 0 ->
			if
			:: resting[c] & 1 -> r = 0
			:: else -> r = 1
			fi;
			resting[c] = resting[c] & ~BIT(r);
			noted[r] = 0;
			yes = (gate[r] == AT_REST);
			if
			:: yes ->
				assert(holder[r] == c && held[r] == 0);
				gate[r] = CLOSED;
				holder[r] = 0;
				processed[r] = 0
			:: else
			fi
		}
		if
#ifndef MUTANT_rest_unlooked
		:: yes && waiting[r] && who == WHOEVER_MAY -> notify(r)
		:: yes && waiting[r] && who == THE_OWNER -> send_home(r)
#endif
		:: else
		fi
	:: atomic { resting[c] == 0 -> r = 0; yes = 0; break }
	od
}

inline put_back(m) {
	atomic {
		!locked[m] ->
		assert(holder[m] == c && processed[m] && gate[m] == OPEN);
		gate[m] = CLOSED;
		holder[m] = 0;
		waiting[m] = waiting[m] + held[m];
		held[m] = 0;
		processed[m] = 0
	}
}

/* What waits in hand goes back, and those are told whose it is. */
inline put_list_back(who) {
	do
	:: listed[c] ? r ->
		put_back(r);
		if
		:: who == WHOEVER_MAY -> notify(r)
		:: who == THE_OWNER -> send_home(r)
		:: else
		fi
	:: atomic { len(listed[c]) == 0 -> r = 0; break }
	od
}

inline empty_hand() {
	put_resting_down(WHOEVER_MAY);
#ifdef MUTANT_put_back_not_told
	put_list_back(NOBODY)
#else
	put_list_back(WHOEVER_MAY)
#endif
}

/* ---- an endless turn: what its timer does ---- */

/* What is left in hand behind a long behaviour. */
inline let_go() {
#ifndef MUTANT_let_go_keeps_resting
	put_resting_down(THE_OWNER);
#endif
#ifdef MUTANT_let_go_tells_nobody
	put_list_back(NOBODY)
#else
#ifdef MUTANT_let_go_calls_only
	put_list_back(NOBODY);
#else
	put_list_back(THE_OWNER);
#endif
	wake_thief()
#endif
}

inline look_at(m, is_worker) {
	if
	:: is_worker && waiting[m] && (owner[m] == c || guests[c] ?? [eval(m)]
#ifndef MUTANT_slice_ignores_resting
		|| resting[c] & BIT(m)
#endif
		) ->
		any = 1;
		if
		:: !processed[m] -> note_old(m, yes)
		:: else
		fi
	:: else
	fi;
#ifndef MUTANT_slice_ignores_listed
	if
	:: is_worker && listed[c] ?? [eval(m)] -> any = 1; note_old(m, yes)
	:: else
	fi;
#endif
	/* What was noted at the first look is old at the second. */
	if
	:: again && was_noted & BIT(m) && seen[m] == 1 -> seen[m] = 2
	:: else
	fi
}

inline endless(kind, is_worker) {
	atomic { hog_core = c; hog_kind = kind; moves[0] = 0; moves[1] = 0; again = 0 }
	do
	:: atomic {
			/* The slice has ended, or the next look is due. */
			any = 0;
			if
			:: some_idle ->
				look_at(0, is_worker);
				look_at(1, is_worker);
				any = any || len(queue[c]) > 0
			:: else
			fi;
			yes = any && again;
			again = any && !again;
			was_noted = 0;
			if
			:: again -> was_noted = (seen[0] == 1) | (seen[1] == 1) << 1
			:: else
			fi;
			any = 0
		}
		if
		:: yes ->
			yes = 0;
			wake_thief();
#ifndef MUTANT_does_not_let_go
			if
			:: is_worker -> let_go()
			:: else
			fi
#else
			skip
#endif
		:: else
		fi
	:: break
	od;
	atomic { hogs = 0; hog_core = 0; hog_kind = 0; again = 0; was_noted = 0; yes = 0 }
}

#define may_hog (left_to_hog > 0 && !hogs)

/* ---- processes ---- */

/* A message is to be sent. */
inline choose_mailbox(n) {
	left_to_send--;
#ifdef THERE_AND_BACK
	n = 1 - m
#else
	if
	:: n = 0
	:: n = 1
	fi
#endif
}

/* To the end of some core's queue. */
inline enqueue(what) {
	atomic {
		if
		:: queue[0] ! what
		:: queue[1] ! what
#if CORES > 2
		:: !out_of_service -> queue[2] ! what
#endif
		fi
	}
}

/* A core with nothing to run takes what may run anywhere. */
inline take_process(o, what) {
	queue[o] ?? what;
	busy[c] = 1
}

#define may_be_taken(o) (queue[o] ?? [CLIENT] || queue[o] ?? [ACTIVATION])

proctype Core(byte c) {
	byte m, n, p, r, dry, was_noted;
	bit yes, any, again, is_listed, sent;

loop:
	atomic { busy[c] = 0; m = 0 }
	if
	:: atomic { queue[c] ? WORKER -> busy[c] = 1; turn[c] = RUNNING }; goto worker
	:: atomic { queue[c] ? CLIENT -> busy[c] = 1 }; goto client
	:: atomic { queue[c] ? ACTIVATION -> busy[c] = 1 }; goto activation
	:: atomic { len(queue[c]) == 0 && c != 0 && queue[0] ?? [CLIENT] -> take_process(0, CLIENT) }; goto client
	:: atomic { len(queue[c]) == 0 && c != 0 && queue[0] ?? [ACTIVATION] -> take_process(0, ACTIVATION) }; goto activation
	:: atomic { len(queue[c]) == 0 && c != 1 && queue[1] ?? [CLIENT] -> take_process(1, CLIENT) }; goto client
	:: atomic { len(queue[c]) == 0 && c != 1 && queue[1] ?? [ACTIVATION] -> take_process(1, ACTIVATION) }; goto activation
	:: atomic { len(queue[c]) == 0 && called[c] && !(c != 0 && may_be_taken(0)) && !(c != 1 && may_be_taken(1)) ->
			called[c] = 0;
			/* May anything leave the range that it is in? */
			may_leave(0, any);
			may_leave(1, yes);
			any = any || yes;
			yes = 0
		}
		if
		:: any && c < WORKERS -> any = 0; wake_worker(c)
		:: else -> any = 0
		fi;
		goto loop
#ifdef OFFLINE
	:: atomic { c == CORES - 1 && !out_of_service -> out_of_service = 1; busy[c] = 1 }
#ifndef MUTANT_offline_keeps
		do
		:: atomic { queue[c] ? p -> enqueue(p) }
		:: atomic { len(queue[c]) == 0 -> p = 0; break }
		od;
#endif
		goto gone
#endif
	fi;

client:
	do
	:: atomic { left_to_send > 0 -> choose_mailbox(n); sent = 1 }
		send(n, 0)
	:: atomic { sent && left_to_send > 0 -> sent = 0; enqueue(CLIENT) }; goto loop
	:: atomic { may_hog -> left_to_hog--; hogs = 1 }
		endless(CLIENT, 0)
	:: atomic { sent = 0; client_gone = 1 }; goto loop
	od;

activation:
	if
	:: atomic { left_to_send > 0 -> choose_mailbox(n) }
		send(n, 0)
	:: true
	fi;
	if
	:: atomic { may_hog -> left_to_hog--; hogs = 1 }
		endless(ACTIVATION, 0)
	:: true
	fi;
	do
#ifdef MUTANT_reattached_unasked
	:: atomic { aside = 0; break }
#else
	:: atomic { side > 0 -> side-- }
	:: atomic { side == 0 -> aside = 0; break }
#endif
	od;
	goto loop;

worker:
	atomic { idle[c] = 0; dry = 0; is_listed = 0 }
	if
	:: batch[c] != 0 -> m = batch[c] - 1; goto deliver
	:: else
	fi;
next:
	atomic { m = 0; batch[c] = 0; is_listed = 0; yes = 0 }
	if
	:: atomic { left_to_tire > 0 -> left_to_tire-- }
		atomic { hints[c] = BIT(0) | BIT(1) }
#ifndef MUTANT_turn_end_keeps
		empty_hand();
#endif
		goto yields
	:: atomic { listed[c] ? m -> is_listed = 1; batch[c] = m + 1; dry = 0 }
		goto deliver
	:: atomic { guests[c] ? m }
		guest[m] = 0;
		goto gulp
	:: atomic { round[c] != 0 ->
			if
			:: round[c] & 1 -> round[c] = round[c] & 2; m = 0
			:: else -> round[c] = 0; m = 1
			fi
		}
		/* A bit stands for a slot: what was stolen since is not there any more. */
		if
		:: owner[m] == c -> goto gulp
		:: else -> goto next
		fi
	:: len(listed[c]) == 0 && len(guests[c]) == 0 && round[c] == 0 ->
		atomic {
			round[c] = hints[c];
			hints[c] = 0;
			if
			:: round[c] != 0 -> goto next
			:: else
			fi
		}
		atomic {
			is_ripe(0, yes);
			if :: yes -> round[c] = 1 :: else fi;
			is_ripe(1, yes);
			if :: yes -> round[c] = round[c] | 2 :: else fi;
			yes = 0;
			if
			:: round[c] != 0 -> goto next
			:: else
			fi
		}
#ifndef MUTANT_sleeps_with_rest
		if
		:: resting[c] != 0 -> put_resting_down(WHOEVER_MAY); goto next
		:: else
		fi;
#endif
		atomic {
			dry++;
			if
			:: dry < 2 -> goto next
			:: else -> dry = 0
			fi
		}
		/* Steals, once. */
		atomic {
			r = 0;
			do
			:: r == MAIL -> break
			:: r < MAIL ->
				if
				:: owner[r] != c -> may_leave(r, yes)
				:: else -> yes = 0
				fi;
				if
				:: yes && moves[r] < 2 -> break
				:: else -> r++
				fi
			od;
			if
			:: r < MAIL -> p = owner[r]
			:: else
			fi;
			yes = 0
		}
		atomic {
			if
			:: r < MAIL && owner[r] == p -> owner[r] = c; moves[r]++; hints[c] = hints[c] | BIT(r); yes = 1
			:: else
			fi;
			r = 0;
			p = 0
		}
		if
		:: yes -> goto next
		:: else
		fi;
		goto waits
	fi;

gulp:
	atomic {
		!locked[m] ->
		dry = 0;
		if
#ifdef MUTANT_gulp_unasked
		:: waiting[m] ->
#else
		:: waiting[m] && !processed[m] ->
#endif
			take(m);
			held[m] = waiting[m];
			waiting[m] = 0;
			gate[m] = OPEN;
			batch[c] = m + 1;
			yes = 1
		:: else -> yes = 0
		fi
	}
	if
	:: yes -> yes = 0
	:: else -> goto next
	fi;

deliver:
#ifdef SHARE
	/* Looks for a surplus. Of what is listed half would leave, which is none of one. */
	if
	:: some_idle -> put_resting_down(WHOEVER_MAY)
	:: true
	fi;
#endif
	do
	:: atomic { held[m] > 0 && aside == m + 1 -> held[m]--; side++ }
	:: atomic { held[m] > 0 && aside != m + 1 ->
			held[m]--;
			if
			:: left_to_send > 0 -> choose_mailbox(n)
			:: n = MAIL
			fi
		}
		if
		:: n < MAIL -> send(n, 1)
		:: else -> n = 0
		fi;
		if
		:: atomic { may_hog -> left_to_hog--; hogs = 1 }
			endless(WORKER, 1)
		:: atomic { left_to_split > 0 -> left_to_split--; aside = m + 1; side_of = m + 1 }
			/* Its worker goes on with the rest of the batch in its next turn. */
#ifndef MUTANT_split_keeps
			empty_hand();
#endif
			if
			:: atomic { turn[c] = QUEUED; queue[c] ! WORKER; enqueue(ACTIVATION) }
			:: atomic { turn[c] = QUEUED; enqueue(ACTIVATION); queue[c] ! WORKER }
			fi;
			goto loop
		:: true
		fi
	:: atomic { held[m] > 0 && left_to_tire > 0 -> left_to_tire-- }
#ifndef MUTANT_turn_end_keeps
		empty_hand();
#endif
		goto yields
	:: held[m] == 0 -> break
	od;
	/* All of it was delivered. */
	if
	:: is_listed && waiting[m] == 0 ->
		atomic {
			gate[m] = AT_REST;
			if
			:: !noted[m] -> noted[m] = 1; resting[c] = resting[c] | BIT(m)
			:: else
			fi
		}
		goto next
	:: else
	fi;
	is_listed = 0;
	if
	:: waiting[m] && !has_other_work(c) ->
		/* gulp_again */
		atomic { !locked[m] -> held[m] = waiting[m]; waiting[m] = 0; moves[m] = 0 }
		goto deliver
	:: waiting[m] && has_other_work(c) && (owner[m] == c || idle[owner[m]]) ->
		/* list_again */
		atomic { !locked[m] -> held[m] = waiting[m]; waiting[m] = 0; moves[m] = 0; list(m) }
		goto next
	:: true
	fi;
	atomic { gate[m] = CLOSED; holder[m] = 0; batch[c] = 0 }
#ifndef MUTANT_noted_is_put_down
	if
	:: noted[m] -> put_resting_down(WHOEVER_MAY)
	:: else
	fi;
#endif
	processed[m] = 0;
#ifndef MUTANT_put_down_unlooked
	if
	:: waiting[m] -> notify(m)
	:: else
	fi;
#endif
	goto next;

yields:
	atomic { turn[c] = QUEUED; queue[c] ! WORKER }
	goto loop;

waits:
	idle[c] = 1;
	any_ripe();
	if
	:: any || len(guests[c]) > 0 ->
		idle[c] = 0;
		any = 0;
		goto yields
	:: else
	fi;
	atomic {
		if
		:: turn[c] == RUNNING -> turn[c] = WAITS
		:: else -> turn[c] = QUEUED; queue[c] ! WORKER
		fi
	}
	goto loop;

gone:
	false
}

/* Something always goes on: the search for fair cycles passes over states in which nobody can take a step. */
active proctype Clock() {
	do
	:: left_to_send <= MESSAGES
	od
}

init {
	atomic {
		byte i;
		for (i : 0 .. CORES - 1) {
			idle[i] = (i < WORKERS);
			run Core(i)
		};
		i = 0;
		owner[1] = OWNER;
		/* The first message, whose behaviour sends. */
		waiting[0] = 1;
		hints[0] = 1;
		idle[0] = 0;
		turn[0] = QUEUED;
		queue[0] ! WORKER;
#ifdef RESTS
		/* In the middle of a turn, of which 1 rests in hand. */
		processed[1] = 1;
		gate[1] = AT_REST;
		noted[1] = 1;
		resting[0] = BIT(1);
#endif
#ifdef NO_CLIENT
		client_gone = 1
#else
		queue[CLIENT_ON] ! CLIENT
#endif
	}
}

/* ---- properties ---- */

#define has_mail(m) (waiting[m] || held[m] || side_of == m + 1 && side)
#define is_stuck(m) (hogs && (batch[hog_core] == m + 1 || hog_kind == ACTIVATION && aside == m + 1))

/* What was sent is handled, whatever else goes on for ever. */
ltl handled { [] (has_mail(TRACK) -> <> (!has_mail(TRACK) || is_stuck(TRACK))) }
/* A worker that waits has nothing in hand. */
#define has_hand(w) (resting[w] || len(listed[w]) || batch[w])
ltl empty_handed { [] (!(turn[0] == WAITS && has_hand(0)) && !(turn[1] == WAITS && has_hand(1))) }
/* In the end nobody executes anything, and nothing is in hand. */
#define is_down(m) (!processed[m] && gate[m] == CLOSED && !noted[m] && !guest[m])
#if CORES > 2
#define quiet (is_idle(0) && is_idle(1) && (is_idle(2) || out_of_service) && is_down(0) && is_down(1))
#else
#define quiet (is_idle(0) && is_idle(1) && is_down(0) && is_down(1))
#endif
ltl rest { []<> hogs || <>[] quiet }
/* Who sends comes to run, and to its end, unless an endless turn is its own. */
ltl arrives { <> client_gone || <>[] (hogs && hog_kind == CLIENT) }
