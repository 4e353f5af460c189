// Package bustest is the suite that every natswire.Bus must pass: the one on NATS and the simulated one. A model that is
// kinder than the broker proves nothing.
//
// The suite waits for deliveries and never for time: every instant it compares comes from the bus itself.
package bustest

import (
	"context"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Patience is how long the suite waits for what must come.
const Patience = 2 * time.Minute

// Run runs the suite. open returns a bus on an empty, provisioned namespace that names spells; each case opens its own.
func Run(t *testing.T, open func(t *testing.T) natswire.Bus, names natswire.Names) {
	RunIn(t, func(t *testing.T, run func(*testing.T)) { run(t) }, open, names)
}

// RunIn is Run with each case, its open included, inside of wrap: in a bubble of virtual time by synctest.Test, say.
func RunIn(t *testing.T, wrap func(*testing.T, func(*testing.T)), open func(t *testing.T) natswire.Bus, names natswire.Names) {
	for _, c := range []struct {
		name string
		run  func(*kit)
	}{
		{"AppendIsFencedByTheLastSequence", appendIsFenced},
		{"MailboxTakesTheFirstMessage", mailboxTakesTheFirst},
		{"SendTellsWhatPublishWould", sendTells},
		{"MessageIDMakesARepeatADuplicate", repeatIsDuplicate},
		{"MessageIDIsSeenBeforeTheMailboxIs", duplicateBeforeMailbox},
		{"StoredResultsAreRepublished", resultsAreRepublished},
		{"LogIsRepublished", logIsRepublished},
		{"OversizeIsRefused", oversizeIsRefused},
		{"ReadsSeeWhatIsStored", readsSeeWhatIsStored},
		{"LatestHasEachSubjectOnce", latestHasEachSubjectOnce},
		{"LatestGoesBeyondAThousandSubjects", latestBeyondAThousand},
		{"PurgeKeepsTheNewest", purgeKeepsTheNewest},
		{"PurgeOfAllResetsTheFence", purgeResetsTheFence},
		{"RemoveIsIdempotent", removeIsIdempotent},
		{"RemoveFromTheLogIsRefused", logDeniesRemove},
		{"NothingComesThatIsNotWanted", nothingUnwanted},
		{"WantIsKeptUntilItComes", wantIsKept},
		{"ClosedPullerGivesBack", closeGivesBack},
		{"UnackedComesAgain", unackedComesAgain},
		{"NakComesAgainAtOnce", nakComesAgain},
		{"NakWithDelayComesLater", nakDelays},
		{"InProgressKeepsTheDelivery", inProgressKeeps},
		{"AcksAreNotFenced", acksAreNotFenced},
		{"MaxAckPendingLimitsThePool", maxAckPendingLimits},
		{"MaxDeliverLeavesTheMessage", maxDeliverLeaves},
		{"TermRemovesAndTells", termRemoves},
		{"WorkQueueRemovesOnAck", ackRemoves},
		{"PausedConsumerHoldsBack", pausedHoldsBack},
		{"ConsumerIsEnsuredTwice", consumerIsEnsuredTwice},
		{"ConsumerStateOfNone", consumerStateOfNone},
		{"PullFromNone", pullFromNone},
		{"DeletedConsumerIsGone", deletedConsumerIsGone},
		{"TimerFiresAndNotEarly", timerFires},
		{"TimerIsReplaced", timerIsReplaced},
		{"PurgeDisarmsATimer", purgeDisarms},
		{"TTLEndsAMessage", ttlEnds},
		{"ObjectsComeBackWhole", objectsComeBack},
		{"RequestIsAnswered", requestIsAnswered},
		{"RequestToNobody", requestToNobody},
		{"EmitIsHeardOnlyBySubscribers", emitIsHeard},
		{"EndedContextStopsACall", endedContextStops},
		{"StaleNakStartsAnotherAttempt", staleNakStartsAnother},
		{"LastNakOrphansAndAnAckRemoves", lastNakOrphans},
		{"OverlappingFilterIsRefused", overlapIsRefused},
		{"NakKeepsItsPlaceInMaxAckPending", nakKeepsItsPlace},
		{"RemovedIsNotDelivered", removedIsNotDelivered},
		{"SettlingTwiceIsOfNoConsequence", settledTwice},
		{"PublishThatNoStreamStores", nobodyStoresIt},
		{"BadTimersAndLifetimesAreRefused", badTimersAreRefused},
		{"RefusedPublishIsHeard", refusedIsHeard},
		{"RepeatedAppendIsFencedOrDuplicate", fencedBeforeDuplicate},
		{"FiredTimerKeepsItsHeaders", dueTimersKeepTheirHeaders},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrap(t, func(t *testing.T) { c.run(&kit{T: t, bus: open(t), n: names}) })
		})
	}
}

// kit is a case with the steps that cases share.
type kit struct {
	*testing.T
	bus natswire.Bus
	n   natswire.Names
}

func (k *kit) publish(m natswire.Msg) natswire.Ack {
	k.Helper()
	ack, err := k.bus.Publish(k.Context(), m)
	if err != nil {
		k.Fatalf("publish on %s: %v", m.Subject, err)
	}
	return ack
}

func (k *kit) publishFails(m natswire.Msg, want protocol.Code) {
	k.Helper()
	_, err := k.bus.Publish(k.Context(), m)
	k.wantCode(err, want)
}

func (k *kit) wantCode(err error, want protocol.Code) {
	k.Helper()
	if got := protocol.CodeOf(err); got != want {
		k.Fatalf("got code %q (%v), want %q", got, err, want)
	}
}

func (k *kit) check(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// ensure makes the consumer of a tool.
func (k *kit) ensure(tool string, change func(*natswire.Consumer)) natswire.Consumer {
	k.Helper()
	c := natswire.Consumer{
		Stream: k.n.Calls(), Durable: tool, Filter: k.n.CallSubject(tool),
		AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1,
	}
	if change != nil {
		change(&c)
	}
	k.check(k.bus.EnsureConsumer(k.Context(), c))
	return c
}

// inbox is what came to a puller, for a case to wait on.
type inbox struct {
	natswire.Puller
	k    *kit
	came chan natswire.Delivery
	lost chan error
}

func (k *kit) pull(stream, durable string) *inbox {
	k.Helper()
	in := &inbox{k: k, came: make(chan natswire.Delivery, 4096), lost: make(chan error, 16)}
	p, err := k.bus.Pull(k.Context(), stream, durable, natswire.PullEvents{
		Deliver: func(d natswire.Delivery) { in.came <- d },
		Lost:    func(err error) { in.lost <- err },
	})
	k.check(err)
	k.Cleanup(p.Close)
	in.Puller = p
	return in
}

func (in *inbox) next() natswire.Delivery {
	in.k.Helper()
	select {
	case d := <-in.came:
		return d
	case err := <-in.lost:
		in.k.Fatalf("the subscription was lost: %v", err)
	case <-time.After(Patience):
		in.k.Fatal("nothing was delivered")
	}
	panic("unreachable")
}

// empty says that nothing came until now. It is worth something only after a signal that must come later.
func (in *inbox) empty() {
	in.k.Helper()
	select {
	case d := <-in.came:
		in.k.Fatalf("%s was delivered (sequence %d, attempt %d): nothing was due", d.Subject, d.Seq, d.Attempt)
	default:
	}
}

// state waits until a consumer is as wanted.
func (k *kit) state(stream, durable, want string, ok func(natswire.ConsumerState) bool) natswire.ConsumerState {
	k.Helper()
	var last natswire.ConsumerState
	k.until("consumer "+durable+": "+want, func() bool {
		s, err := k.bus.ConsumerState(k.Context(), stream, durable)
		k.check(err)
		last = s
		return ok(s)
	})
	return last
}

// until asks again until ok, with growing pauses.
func (k *kit) until(what string, ok func() bool) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), Patience)
	defer cancel()
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			k.Fatalf("it never came true: %s", what)
		}
	}
}

func seq(n uint64) *uint64 { return &n }
