/*
 * Mail: from the message that is sent to the worker that handles it.
 *
 * Cores, each with a worker. A client on core 0 and the behaviours themselves send a few messages; one turn at a time
 * may become endless, a behaviour or the client, and may end after all. Nothing is ever detached from a worker: what is
 * shown holds when there is no stack to lend.
 *
 * Models: in actor/run executor_state.rs (notify, notify_idle, is_kept_here, send_home), steal.rs and
 * worker/{turn,gulping,hosting,surplus}.rs; in actor/mail mailbox.rs, mailbox/{taking,holding,leaving}.rs, patience.rs,
 * guest_flag.rs, processing_flag.rs and owner_hint.rs; in sched process/run_state.rs, cores/idle_flag.rs, run/idle.rs,
 * run/slice.rs (on_timer, look_for_waiting), spawn/residents.rs, and the part of place/wake.rs and place/enqueue.rs that
 * wakes a worker.
 *
 * A step is what lies between two accesses to what others write, so sequential consistency is assumed: that the barriers
 * make it so is shown by loom and herd7. The looks `is_ripe` and `may_leave` are one step, for each of their reads may
 * decide alone. The swap of two slots is one step; its four are loom's business.
 *
 * Time. Who looks at mail notes it. A later look may find the note old, and must find it old when a timer has fired that
 * was armed after the note was made: the next look of a slice's end, or that of the core that watches. So a
 * first look may find it old, too: that stands for a backlog, which may leave at once.
 *
 * Left out: detached behaviours (they only help); pinned mailboxes (their worker is the only one that may take them);
 * more than one executor; cores without a worker; a turn that is over because its reductions are used up (what waits
 * for the worker stays where it is, and the worker stays in its queue); stopping. A mailbox that an endless behaviour
 * has in hand waits for that behaviour, so it is not asked for. A mailbox changes its slot twice at most before it is gulped: two thieves
 * that rob each other for ever in lockstep are left out. Each worker has a slot to spare, for a thief gives an empty
 * mailbox: one whose only mailbox is in another's hand can take none.
 *
 * TRACK=n follows one mailbox alone. COARSE makes fewer steps of an idle core's announcement, and leaves out its search
 * for processes. HOSTED begins with mail that is a guest, has waited for long, and whose owner was roused; then no note
 * gets old, and nobody watches: that is for three cores.
 */

#ifndef CORES
#define CORES 2
#endif
/* Mailboxes that get mail. */
#ifndef MAIL
#define MAIL 2
#endif
/* Messages that are sent. */
#ifndef MESSAGES
#define MESSAGES 2
#endif
/* Gulps that find no memory. */
#ifndef FAILURES
#define FAILURES 1
#endif
/* Turns that become endless. */
#ifndef HOGS
#define HOGS 1
#endif
/* share.looks */
#ifdef HOSTED
#define LOOKS 0
#else
#define LOOKS 1
#endif
/* idle.rs: FRUITLESS_SEARCHES */
#ifdef COARSE
#define SEARCHES 1
#else
#define SEARCHES 2
#endif
#define SLOTS (2 * CORES)

#define WAITS 0
#define QUEUED 1
#define RUNNING 2
#define NOTIFIED 3

#define AWAKE 0
#define DOZING 1
#define SLEEPING 2

#define BIT(n) (1 << (n))

/* Mailboxes. */
byte waiting[SLOTS];
bit locked[SLOTS];
bit in_hand[SLOTS];
bit guest[SLOTS];
byte seen[SLOTS];		/* 0: not noted; 1: noted; 2: noted long ago */
byte place[SLOTS];		/* the owner's number: a slot */
byte moves[SLOTS];
byte table[SLOTS];

/* Workers. */
chan guests[CORES] = [MAIL] of { byte };
byte hints[CORES];
byte round[CORES];
bit idle[CORES];
byte turn[CORES];
bit queued[CORES];		/* in its core's queue */
byte robbing;			/* ExecutorState::searching */

/* Cores. */
byte depth[CORES];
bit announced[CORES];		/* IDLE_CORES */
bit called[CORES];
byte looks[CORES];
bit watches[CORES];
bit may_rouse[CORES];		/* next_rouse has passed */
byte marks[CORES];		/* the notes that were there when the core's timer was armed */
bit watched;
byte searching;

/* The client. */
#define ALARM 3
#define GONE 4
byte client = QUEUED;

/* The course of events. */
byte left_to_send = MESSAGES;
byte left_to_fail = FAILURES;
byte left_to_hog = HOGS;
bit hogs;			/* an endless turn goes on */
byte hog_core;

/* Seen by the properties only. */
byte track;			/* the mailbox that is watched */
byte tended[SLOTS];		/* so many are about to see to it */
byte inside[SLOTS];		/* workers that handle a batch from it */
bit stuck[SLOTS];		/* an endless behaviour has it in hand */
bit asleep[CORES];

#define no_guest_twice(m) (!(guests[0] ?? [eval(m)]) && !(guests[1] ?? [eval(m)]) && OTHERS(m))
#if CORES > 2
#define OTHERS(m) !(guests[2] ?? [eval(m)])
#define some_idle (announced[0] || announced[1] || announced[2])
#define all_idle (announced[0] && announced[1] && announced[2])
#define mask_of_idle (announced[0] | announced[1] << 1 | announced[2] << 2)
#define no_watch (!watches[0] && !watches[1] && !watches[2])
#define at_rest(c) (asleep[c] && !watches[c])
#define quiet (at_rest(0) && at_rest(1) && at_rest(2))
#define others_at_rest ((hog_core == 0 || at_rest(0)) && (hog_core == 1 || at_rest(1)) && (hog_core == 2 || at_rest(2)))
#else
#define OTHERS(m) true
#define some_idle (announced[0] || announced[1])
#define all_idle (announced[0] && announced[1])
#define mask_of_idle (announced[0] | announced[1] << 1)
#define no_watch (!watches[0] && !watches[1])
#define at_rest(c) (asleep[c] && !watches[c])
#define quiet (at_rest(0) && at_rest(1))
#define others_at_rest ((hog_core == 0 || at_rest(0)) && (hog_core == 1 || at_rest(1)))
#endif

/* ---- time ---- */

inline note_old(m, yes) {
	if
	:: seen[m] == 0 -> seen[m] = 1; yes = 0
	:: seen[m] == 1 -> yes = 0
#ifndef HOSTED
	:: seen[m] < 2 -> seen[m] = 2; yes = 1
#endif
	:: seen[m] == 2 -> yes = 1
	fi
}

/* A timer is armed: what is noted now will be old when it fires, and whoever has roused its worker may do so again. */
inline arm(c) {
	marks[c] = (seen[0] != 0) | (seen[1] != 0) << 1 | (!may_rouse[0]) << 4 | (!may_rouse[1]) << 5;
#if MAIL > 2
	marks[c] = marks[c] | (seen[2] != 0) << 2;
#endif
#if CORES > 2
	marks[c] = marks[c] | (!may_rouse[2]) << 6
#endif
}

inline fires(c) {
	if :: marks[c] & BIT(0) -> seen[0] = 2 :: else fi;
	if :: marks[c] & BIT(1) -> seen[1] = 2 :: else fi;
	if :: marks[c] & BIT(4) -> may_rouse[0] = 1 :: else fi;
	if :: marks[c] & BIT(5) -> may_rouse[1] = 1 :: else fi;
#if MAIL > 2
	if :: marks[c] & BIT(2) -> seen[2] = 2 :: else fi;
#endif
#if CORES > 2
	if :: marks[c] & BIT(6) -> may_rouse[2] = 1 :: else fi;
#endif
	marks[c] = 0
}

inline unmark(b) {
	marks[0] = marks[0] & ~BIT(b);
	marks[1] = marks[1] & ~BIT(b);
#if CORES > 2
	marks[2] = marks[2] & ~BIT(b);
#endif
}

/* Mail comes into an empty mailbox, or is gone: the note is taken back. */
inline unnote(m) {
	seen[m] = 0;
	unmark(m)
}

/* ---- looks: one step each ---- */

inline may_leave(m, yes) {
	atomic {
		if
		:: waiting[m] && !in_hand[m] -> note_old(m, yes)
		:: else -> yes = 0
		fi
	}
}

inline is_ripe(m, yes) {
	atomic {
		if
		:: waiting[m] && !in_hand[m] && !guest[m] -> yes = 1
#ifndef MUTANT_guest_never_ripe
		:: waiting[m] && !in_hand[m] && guest[m] -> note_old(m, yes)
#endif
		:: else -> yes = 0
		fi
	}
}

/* ---- waking ---- */

inline wake_core(t) {
	atomic {
		if
		:: depth[t] != AWAKE -> depth[t] = AWAKE; yes = 1
		:: else -> yes = 0
		fi
	}
}

inline wake_worker(w) {
	atomic {
		if
		:: turn[w] == WAITS && w == c -> turn[w] = QUEUED; queued[w] = 1; yes = 0
		:: turn[w] == WAITS && w != c -> turn[w] = QUEUED; yes = 1
		:: turn[w] == RUNNING -> turn[w] = NOTIFIED; yes = 0
		:: else -> yes = 0
		fi
	}
	if
	:: yes ->
		queued[w] = 1;
		wake_core(w);
		yes = 0
	:: else
	fi
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
		:: searching -> mask = 0
		:: else -> mask = mask_of_idle
		fi;
		k = 0
	}
	do
	:: atomic { k < CORES && (mask & BIT(k)) -> called[k] = 1 }
		wake_core(k);
		atomic {
			if
			:: yes -> k = CORES; yes = 0
			:: else -> k++
			fi
		}
	:: atomic { k < CORES && !(mask & BIT(k)) -> k++ }
	:: k == CORES -> break
	od;
	atomic { k = 0; mask = 0 }
}

/* ---- telling of mail; tended[m] was counted by the caller ---- */

inline go_home(m) {
	atomic { hints[p / 2] = hints[p / 2] | BIT(p % 2) }
	wake_if_idle(p / 2)
}

#define has_other_work(w) (round[w] != 0 || hints[w] != 0 || (len(guests[w]) > 0))

inline notify(m) {
	atomic {
		yes = in_hand[m];
		if
		:: !yes -> p = place[m]
		:: else
		fi
	}
	if
	:: yes
	:: else ->
		if
		:: !idle[p / 2] -> atomic { hints[p / 2] = hints[p / 2] | BIT(p % 2) }
		:: else ->
			if
			:: p / 2 == c || has_other_work(c) -> go_home(m)
			:: p / 2 != c ->
				atomic {
#ifdef MUTANT_guest_unclaimed
					yes = 1;
#else
					yes = !guest[m];
#endif
					guest[m] = 1
				}
				if
				:: yes ->
					atomic {
						assert(no_guest_twice(m));
						guests[c] ! m
					}
#ifndef MUTANT_host_not_woken
					wake_if_idle(c)
#endif
				:: else
				fi
			fi
		fi
	fi;
	atomic { tended[m]--; p = 0; yes = 0 }
}

inline choose_mailbox(m) {
	atomic {
		left_to_send > 0 ->
		left_to_send--;
		if
		:: m = 0
		:: m = 1
#if MAIL > 2
		:: m = 2
#endif
		fi
	}
}

inline send(m) {
	atomic {
		!locked[m] ->
		locked[m] = 1;
		waiting[m]++;
		if
		:: waiting[m] == 1 -> unnote(m); tended[m]++; yes = 1
		:: else -> yes = 0
		fi
	}
	if
	:: yes -> notify(m)
	:: else
	fi;
	atomic { locked[m] = 0 }
}

/* ---- an endless turn: what its timer does ---- */

inline look_at_own(s) {
	if
	:: table[s] < MAIL && waiting[table[s]] ->
		any = 1;
		if
		:: !in_hand[table[s]] -> note_old(table[s], yes)
		:: else
		fi
	:: else
	fi
}

inline look_at_guest(m) {
	if
	:: guests[c] ?? [eval(m)] && waiting[m] ->
		any = 1;
		if
		:: !in_hand[m] -> note_old(m, yes)
		:: else
		fi
	:: else
	fi
}

inline endless(is_worker) {
	atomic {
		hog_core = c; moves[0] = 0; moves[1] = 0;
#if MAIL > 2
		moves[2] = 0
#endif
	}
	do
	:: atomic {
			/* The slice has ended, or the next look is due. */
			any = 0;
			if
			:: again -> fires(c)
			:: else
			fi;
			if
			:: some_idle ->
				if
				:: is_worker ->
					look_at_own(2 * c);
					look_at_own(2 * c + 1);
					look_at_guest(0);
					look_at_guest(1);
#if MAIL > 2
					look_at_guest(2)
#endif
				:: else
				fi;
#ifdef MUTANT_empty_guest_counts
				any = any || is_worker && len(guests[c]) > 0;
#endif
#ifdef MUTANT_slice_ignores_queue
				skip
#else
				any = any || queued[c] || (c == 0 && client == QUEUED)
#endif
			:: else
			fi;
			yes = any && again;
			again = any && !again;
			if
			:: again -> arm(c)
			:: else
			fi;
#ifdef MUTANT_slice_looks_once
			again = 0;
#endif
			any = 0
		}
		if
		:: yes ->
#ifdef MUTANT_slice_calls_nobody
			skip
#else
			wake_thief()
#endif
		:: else
		fi
	:: break
	od;
	atomic { hogs = 0; hog_core = 0; again = 0; marks[c] = 0; yes = 0 }
}

/* ---- stealing ---- */

/* A mailbox is in a slot now: the number is stored until it is found right. */
inline publish(m, s) {
	p = s;
	do
	:: place[m] = p;
		atomic {
			if
			:: table[p] == m -> break
			:: else ->
				p = 0;
				do
				:: table[p] != m -> p++
				:: else -> break
				od
			fi
		}
	od
}

inline tell_stolen(m, is_given) {
	if
	:: waiting[m] ->
		atomic { hints[p / 2] = hints[p / 2] | BIT(p % 2) }
		if
		:: is_given || p / 2 != c -> wake_if_idle(p / 2)
		:: else
		fi
	:: else
	fi
}

inline is_at_rest(m) { (waiting[m] == 0 && !in_hand[m]) }

/* Sets `stolen`. */
inline try_steal() {
	atomic {
		stolen = 0;
		if
		:: robbing == 0 -> robbing = 1; yes = 1
		:: else -> yes = 0
		fi
	}
	if
	:: yes ->
		/* The thief's empty slot. */
		atomic {
			if
			:: !waiting[table[2 * c]] && !in_hand[table[2 * c]] -> mine = 2 * c; yes = 1
			:: else ->
				if
				:: !waiting[table[2 * c + 1]] && !in_hand[table[2 * c + 1]] -> mine = 2 * c + 1; yes = 1
				:: else -> yes = 0
				fi
			fi;
			m = table[mine]
		}
		if
		:: yes ->
			/* His full one. */
			atomic {
				k = 0;
				do
				:: k == SLOTS -> break
				:: k < SLOTS && (k / 2 == c || table[k] >= MAIL) -> k++
				:: k < SLOTS && k / 2 != c && table[k] < MAIL ->
					g = table[k];
					may_leave(g, yes);
					if
					:: yes && moves[g] < 2 -> break
					:: else -> k++
					fi
				od;
				if
				:: k == SLOTS -> g = 0
				:: else
				fi;
				yes = 0
			}
			atomic {
				if
				:: k < SLOTS && table[mine] == m && table[k] == g ->
					table[mine] = g;
					table[k] = m;
					tended[g]++;
					tended[m]++;
					moves[g]++;
					stolen = 1
				:: else
				fi
			}
			if
			:: stolen ->
				publish(g, mine);
				tell_stolen(g, 0);
				atomic { tended[g]--; g = 0 };
#ifndef MUTANT_given_not_published
				publish(m, k);
#ifndef MUTANT_given_not_looked_at
				tell_stolen(m, 1);
#endif
#endif
				atomic { tended[m]-- }
			:: else
			fi
		:: else
		fi;
		atomic { robbing = 0; m = 0; g = 0; k = 0; mine = 0; p = 0; yes = 0 }
	:: else
	fi
}

/* ---- idle ---- */

#define finds_work (queued[c] || (c == 0 && client == QUEUED) || called[c])

#ifdef COARSE
/* Flag and mask in one step, and no search for processes: for three cores. */
inline announce() {
	atomic { announced[c] = 1; depth[c] = DOZING }
}
inline retract() {
	atomic { announced[c] = 0; depth[c] = AWAKE }
}
inline search_for_processes() {
	skip
}
#else
inline announce() {
	announced[c] = 1;
	depth[c] = DOZING
}
inline retract() {
	depth[c] = AWAKE;
	announced[c] = 0
}
/* Finds none, but keeps others from calling a thief meanwhile. */
inline search_for_processes() {
	atomic {
		if
		:: !searching -> searching = 1; yes = 1
		:: else -> yes = 0
		fi
	}
	if
	:: yes -> atomic { searching = 0; yes = 0 }
	:: else
	fi
}
#endif

/* Sets `any`: whether something may leave its core. */
inline look_for_surplus_elsewhere() {
	atomic {
		k = 0;
		do
		:: k < SLOTS ->
			if
			:: table[k] < MAIL ->
				may_leave(table[k], yes);
				any = any || yes
			:: else
			fi;
			k++
		:: else -> break
		od;
		k = 0;
		yes = 0;
		/* Not right after they were told; how long ago that was is not known. */
		if
		:: any && !may_rouse[c] -> any = 0
		:: any
		:: !any
		fi
	}
}

inline next_look() {
	atomic {
		if
#ifdef MUTANT_watch_without_end
		:: !watched ->
#else
		:: !all_idle && looks[c] < LOOKS && !watched ->
			looks[c]++;
#endif
			watched = 1;
			watches[c] = 1;
			arm(c)
		:: else
		fi
	}
}

proctype Core(byte c) {
	byte m, g, p, k, n, mask, mine, dry;
	bit yes, any, again, was_guest, sent, sees, stolen;

loop:
	/* The core loop. */
	if
	:: atomic { c == 0 && client == ALARM -> client = QUEUED }; goto loop
	:: atomic { queued[c] -> queued[c] = 0; turn[c] = RUNNING; looks[c] = 0 }; goto worker
	:: atomic { c == 0 && client == QUEUED -> client = RUNNING; looks[c] = 0 }; goto a_client
	:: !queued[c] && !(c == 0 && client == QUEUED) -> goto idling
	fi;

a_client:
	do
	:: choose_mailbox(m);
		send(m);
		atomic { m = 0; sent = 1 }
	:: atomic { sent && left_to_send > 0 -> client = ALARM; sent = 0 }; goto loop
	:: atomic { left_to_hog > 0 && !hogs -> left_to_hog--; hogs = 1 }
		endless(0)
	:: atomic { client = GONE; sent = 0 }; goto loop
	od;

worker:
	atomic { idle[c] = 0; dry = 0 }
next:
	atomic { m = 0; was_guest = 0; yes = 0 }
	if
	:: atomic { (len(guests[c]) > 0) -> guests[c] ? m; was_guest = 1; tended[m]++ }
#if !defined(MUTANT_guest_cleared_late) && !defined(MUTANT_guest_cleared_after_gulp)
		guest[m] = 0;
#endif
		goto gulp
	:: atomic { round[c] != 0 ->
			if
			:: round[c] & 1 -> round[c] = round[c] & 2; m = table[2 * c]
			:: else -> round[c] = 0; m = table[2 * c + 1]
			fi
		}
		if
		:: waiting[m] -> tended[m]++; goto gulp
		:: else -> goto next
		fi
	:: len(guests[c]) == 0 && round[c] == 0 ->
		atomic { round[c] = hints[c]; hints[c] = 0 }
		atomic {
			if
			:: round[c] == 0 ->
				is_ripe(table[2 * c], yes);
				if :: yes -> round[c] = 1 :: else fi;
				is_ripe(table[2 * c + 1], yes);
				if :: yes -> round[c] = round[c] | 2 :: else fi
			:: else
			fi;
			yes = 0;
			if
			:: round[c] != 0 -> goto next
			:: else -> dry++
			fi;
			if
			:: dry < 2 -> goto next
			:: else -> dry = 0
			fi
		}
		if
		:: c == 0 && client == QUEUED
		:: else ->
			try_steal();
			if
			:: stolen -> stolen = 0; goto next
			:: else
			fi
		fi;
		goto waits
	fi;

gulp:
	atomic {
		!locked[m] ->
		if
		:: left_to_fail > 0 -> left_to_fail--; yes = 0
#ifdef MUTANT_gulp_unasked
		:: waiting[m] ->
#else
		:: waiting[m] && !in_hand[m] ->
#endif
			in_hand[m] = 1;
			inside[m]++;
			assert(inside[m] == 1);
			waiting[m] = 0;
			moves[m] = 0;
			unnote(m);
			yes = 1
		:: !waiting[m] || in_hand[m] -> yes = 0
		fi;
		dry = 0
	}
#ifdef MUTANT_guest_cleared_after_gulp
	if :: was_guest -> guest[m] = 0 :: else fi;
#endif
	if
	:: !yes ->
		/* not_gulped */
#ifdef MUTANT_not_gulped_forgets
		skip;
#else
		if
		:: was_guest ->
			is_ripe(m, yes);
			if
			:: yes -> tended[m]++; notify(m)
			:: else
			fi
		:: else
		fi;
#endif
#ifdef MUTANT_guest_cleared_late
		if :: was_guest -> guest[m] = 0 :: else fi;
#endif
		tended[m]--;
		goto next
	:: else ->
#ifdef MUTANT_guest_cleared_late
		if :: was_guest -> guest[m] = 0 :: else fi;
#endif
		tended[m]--
	fi;

	/* run_batch: first share */
	if
	:: atomic { some_idle ->
			yes = 0;
			k = 2 * c;
			do
			:: k < 2 * c + 2 ->
				if
				:: table[k] < MAIL -> may_leave(table[k], yes); any = any || yes
				:: else
				fi;
				k++
			:: else -> break
			od;
			k = 0;
			g = 0;
			n = SLOTS;
			do
			:: g < MAIL ->
				if
				:: guests[c] ?? [eval(g)] ->
					may_leave(g, yes);
					if :: yes -> n = g :: else fi
				:: else
				fi;
				g++
			:: else -> break
			od;
			yes = 0;
			g = 0
		}
		if
		:: any -> any = 0; wake_thief()
		:: else
		fi;
		/* Guests that may leave; the last of them is sent home. */
		if
		:: n < SLOTS -> p = place[n]; go_home(n)
		:: else
		fi;
		atomic { n = 0; p = 0; yes = 0 }
	:: true
	fi;
behave:
	if
	:: choose_mailbox(n);
		send(n);
		n = 0
	:: true
	fi;
	if
	:: atomic { left_to_hog > 0 && !hogs -> left_to_hog--; hogs = 1; stuck[m] = 1 }
		endless(1);
		stuck[m] = 0
	:: true
	fi;
	/* gulp_again: without putting it down, if nothing else waits */
	if
	:: waiting[m] && !has_other_work(c) ->
		atomic { !locked[m] -> waiting[m] = 0; moves[m] = 0; unnote(m) }
		goto behave
	:: else
	fi;
	atomic { inside[m]--; in_hand[m] = 0; tended[m]++; yes = 0 }
#ifdef MUTANT_put_down_without_look
	atomic { tended[m]-- }
#else
	if
	:: waiting[m] -> notify(m)
	:: else -> tended[m]--
	fi;
#endif
	goto next;

waits:
	idle[c] = 1;
#ifndef MUTANT_worker_no_last_look
	atomic {
		if
		:: (len(guests[c]) > 0) -> yes = 1
		:: else ->
			is_ripe(table[2 * c], yes);
			any = yes;
			is_ripe(table[2 * c + 1], yes);
			yes = yes || any;
			any = 0
		fi
	}
	if
	:: yes ->
		idle[c] = 0;
		atomic { turn[c] = QUEUED; queued[c] = 1; yes = 0 }
		goto loop
	:: else
	fi;
#endif
	atomic {
		if
		:: turn[c] == RUNNING -> turn[c] = WAITS
		:: else ->
#ifdef MUTANT_turn_end_unasked
			turn[c] = WAITS
#else
			turn[c] = QUEUED; queued[c] = 1
#endif
		fi
	}
	goto loop;

idling:
	atomic { sees = watches[c]; watches[c] = 0; n = 0 }
	do
	:: n < SEARCHES ->
		atomic {
			n++;
			if
#ifdef MUTANT_called_does_not_look
			:: called[c] -> called[c] = 0; looks[c] = 0
#else
			:: called[c] -> called[c] = 0; looks[c] = 0; sees = 1
#endif
			:: else
			fi
		}
		search_for_processes();
		announce();
		if
		:: sees -> look_for_surplus_elsewhere()
		:: else
		fi;
		atomic {
			if
			:: !finds_work && !any -> break
			:: else
			fi
		}
		retract();
		if
		:: queued[c] || (c == 0 && client == QUEUED) -> goto awake
		:: else ->
			if
			:: any ->
				atomic { may_rouse[c] = 0; unmark(4 + c) }
#ifndef MUTANT_wakes_no_worker
				wake_worker(c);
#endif
				goto awake
			:: else
			fi
		fi
	:: else -> break
	od;
	atomic { n = 0; sees = 0; any = 0; yes = 0 }
	announce();
#ifndef MUTANT_core_no_look
	if
	:: finds_work -> goto retracts
	:: else
	fi;
#endif
	/* The doze ends by itself. */
	if
	:: depth[c] == AWAKE -> goto retracts
	:: else
	fi;
	depth[c] = SLEEPING;
	next_look();
	do
	:: atomic { depth[c] == AWAKE -> break }
#ifndef MUTANT_core_no_look
	:: atomic { depth[c] != AWAKE && finds_work -> break }
	:: atomic { depth[c] != AWAKE && !finds_work -> asleep[c] = 1 }
#else
	:: atomic { depth[c] != AWAKE -> asleep[c] = 1 }
#endif
		if
		:: atomic { depth[c] == AWAKE -> asleep[c] = 0; break }
		:: atomic { watches[c] -> asleep[c] = 0; fires(c); break }
		:: atomic { c == 0 && client == ALARM -> asleep[c] = 0; client = QUEUED; break }
		fi
	od;
	atomic {
		marks[c] = 0;
		if
#ifndef MUTANT_watch_kept
		:: watches[c] -> watched = 0
#endif
		:: else
		fi
	}
retracts:
	retract();
awake:
	atomic { n = 0; any = 0; sees = 0; yes = 0; k = 0 }
	goto loop
}

init {
	atomic {
		byte i;
		for (i : 0 .. CORES - 1) {
			table[2 * i] = i;
			place[i] = 2 * i;
			table[2 * i + 1] = CORES + i;
			place[CORES + i] = 2 * i + 1;
			idle[i] = 1;
			may_rouse[i] = 1;
			run Core(i)
		};
		i = 0;
#ifdef HOSTED
		/* The last worker has been given the mailbox 1, whose worker is idle, by a sender on its core. */
		waiting[1] = 1;
		guest[1] = 1;
		guests[CORES - 1] ! 1;
		idle[CORES - 1] = 0;
		turn[CORES - 1] = QUEUED;
		queued[CORES - 1] = 1;
		/* It has waited for long, and its worker has been roused. */
		seen[1] = 2;
		turn[1] = QUEUED;
		queued[1] = 1;
#endif
#ifdef TRACK
		track = TRACK
#else
		if
		:: track = 0
		:: track = 1
		fi
#endif
	}
}

/* ---- properties ---- */

#define is_in_range(m, w) (table[2 * w] == m || table[2 * w + 1] == m)
#define sleeps(w) (idle[w] && turn[w] == WAITS)
#define is_hosted_by(m, w) (guests[w] ?? [m] && turn[w] != WAITS)
#if CORES > 2
#define owner_sleeps(m) (is_in_range(m, 0) && sleeps(0) || is_in_range(m, 1) && sleeps(1) || is_in_range(m, 2) && sleeps(2))
#define is_hosted(m) (is_hosted_by(m, 0) || is_hosted_by(m, 1) || is_hosted_by(m, 2))
#else
#define owner_sleeps(m) (is_in_range(m, 0) && sleeps(0) || is_in_range(m, 1) && sleeps(1))
#define is_hosted(m) (is_hosted_by(m, 0) || is_hosted_by(m, 1))
#endif
#define is_forgotten(m) (waiting[m] && owner_sleeps(m) && !in_hand[m] && !tended[m] && !is_hosted(m))

/* What was sent is handled, whatever else goes on for ever. */
ltl handled { [] (waiting[track] > 0 -> <> (waiting[track] == 0 || stuck[track])) }
/* Nobody sleeps over mail that nobody sees to; and the watch is somebody's. */
ltl seen_to { [] (!is_forgotten(0) && !is_forgotten(1) && (watched -> !no_watch)) }
/* In the end nobody executes anything. */
ltl rest { []<> hogs || <>[] quiet }
/* The same for the others while a turn goes on for ever, when nothing waits behind it. */
#define waits_behind (queued[hog_core] || hog_core == 0 && client == QUEUED || waiting[0] || waiting[1])
ltl others_rest { []<> (!hogs || waits_behind) || <>[] others_at_rest }
