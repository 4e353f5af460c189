package bench

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// gatedName is the tool whose calls wait for a person; toolName's do not.
const gatedName = "gated"

// parking is a fabric whose sessions come to wait for a person. Nothing of those that wait stays in this process.
type parking struct {
	fabric  *fabric
	starts  chan started // of calls that are timed; sent to only while somebody waits
	answers chan time.Time

	mu     sync.Mutex
	coming map[string]chan struct{} // sessions on their way to their wait
	timed  map[string]bool          // sessions whose calls' starts are told
}

// started is when a worker's function was called.
type started struct {
	session string
	at      time.Time
}

func openParking(ctx context.Context, b *Broker) (*parking, error) {
	p := &parking{starts: make(chan started, 1), answers: make(chan time.Time, 1), coming: map[string]chan struct{}{}, timed: map[string]bool{}}
	var tools []tool.Tool
	for name, gated := range map[string]bool{toolName: false, gatedName: true} {
		type args struct {
			Text string `json:"text"`
		}
		t, err := functiontool.New(functiontool.Config{Name: name, Description: "Answers", RequireConfirmation: gated},
			func(ctx tool.Context, _ args) (string, error) {
				at := time.Now()
				p.mu.Lock()
				told := p.timed[ctx.SessionID()]
				p.mu.Unlock()
				if told {
					p.starts <- started{ctx.SessionID(), at}
				}
				return answerText, nil
			})
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	f, err := openFabricOf(ctx, b, "benchpark", caller{p}, tools...)
	if err != nil {
		return nil, err
	}
	p.fabric = f
	n := f.conn.Names()
	if _, err := f.conn.Subscribe(n.ParkSubject(appName, "*", "*"), p.listed); err != nil {
		f.close()
		return nil, err
	}
	return p, nil
}

// caller is a model that calls the tool which the last message names, and ends the run with its result.
type caller struct{ p *parking }

func (caller) Name() string { return "caller" }

// GenerateContent implements model.LLM.
func (c caller) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		content := lastWord()
		if said := req.Contents[len(req.Contents)-1].Parts[0]; said.FunctionResponse == nil {
			name, timed, _ := strings.Cut(said.Text, " ")
			content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{genai.NewPartFromFunctionCall(name, map[string]any{"text": questionText})}}
			if timed != "" {
				c.p.answers <- time.Now()
			}
		}
		yield(&model.LLMResponse{Content: content, TurnComplete: true, FinishReason: genai.FinishReasonStop}, nil)
	}
}

// listed hears that a session's call is on its way into the index of what waits.
func (p *parking) listed(m natswire.Msg) {
	_, session, _, ok := p.fabric.conn.Names().ParsePark(m.Subject)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if waits := p.coming[session]; waits != nil {
		delete(p.coming, session)
		close(waits)
	}
}

// park has n sessions come to wait, inFlight at once.
func (p *parking) park(ctx context.Context, inFlight, n int) error {
	_, err := Drive(ctx, inFlight, n, func(ctx context.Context, _, _ int) error {
		id, waits := protocol.NewID(), make(chan struct{})
		p.mu.Lock()
		p.coming[id] = waits
		p.mu.Unlock()
		if _, err := p.fabric.client.Send(ctx, appName, id, client.Text(gatedName)); err != nil {
			return err
		}
		select {
		case <-waits:
			return nil
		case err := <-p.fabric.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return err
}

// looks is how often the list is read, and a call is looked for.
const looks = 50

// look times the first page of what waits, and finding any call by its id, among so many sessions.
func (p *parking) look(ctx context.Context, sessions int) (page, find Spread, err error) {
	c := p.fabric.client
	var pages, finds []time.Duration
	for range looks {
		from := time.Now()
		first, err := c.Parked(ctx, client.ParkedFilter{Kind: client.WaitsConfirmation}, 0, 100)
		if err != nil {
			return page, find, err
		}
		pages = append(pages, time.Since(from))
		revision := first.Parked[0].Revision + rand.Uint64N(uint64(sessions))
		some, err := c.Parked(ctx, client.ParkedFilter{}, revision, 1)
		if err != nil {
			return page, find, err
		}
		one := some.Parked[0]
		from = time.Now()
		found, err := c.FindParked(ctx, one.Call)
		if err != nil {
			return page, find, err
		}
		if finds = append(finds, time.Since(from)); found.Session != one.Session {
			return page, find, fmt.Errorf("found session %s for call %s of %s", found.Session, one.Call, one.Session)
		}
	}
	return spread(pages), spread(finds), nil
}

// replies times three kinds of starts in turn, n times: of a call that is approved, of an ordinary one in a running session,
// and of an ordinary one that a client makes.
func (p *parking) replies(ctx context.Context, n int) ([]Reply, error) {
	waiting, err := p.fabric.client.Parked(ctx, client.ParkedFilter{}, 0, n)
	if err != nil {
		return nil, err
	}
	if len(waiting.Parked) < n {
		return nil, fmt.Errorf("%d sessions wait, %d were parked", len(waiting.Parked), n)
	}
	kinds := []struct {
		name  string
		start func(context.Context, *client.Parked) (time.Duration, error)
	}{{NameApproved, p.approved}, {NameInSession, p.inSession}, {NameCalled, p.called}}
	times := make([][]time.Duration, len(kinds))
	for i, parked := range waiting.Parked {
		for turn := range kinds {
			k := (turn + i) % len(kinds)
			took, err := kinds[k].start(ctx, &parked)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kinds[k].name, err)
			}
			times[k] = append(times[k], took)
		}
	}
	var replies []Reply
	for i, k := range kinds {
		replies = append(replies, Reply{Subject: k.name, Spread: spread(times[i])})
	}
	for i := range replies {
		replies[i].Ratio = ratio(replies[0].P50, replies[i].P50)
	}
	return replies, nil
}

// approved publishes an approval as any NATS client would, and waits until the worker has started and the session has ended.
func (p *parking) approved(ctx context.Context, parked *client.Parked) (time.Duration, error) {
	return p.time(ctx, parked.App, parked.Session, func() (time.Time, error) {
		from := time.Now()
		_, err := p.fabric.conn.Publish(ctx, natswire.Msg{
			Subject: p.fabric.conn.Names().ApprovalSubject(parked.App, parked.Session, parked.Confirmation.ID, "bench"), Data: []byte(`{"confirmed":true}`),
		})
		return from, err
	})
}

// inSession has a session call, and times it from the model's answer.
func (p *parking) inSession(ctx context.Context, _ *client.Parked) (time.Duration, error) {
	id := protocol.NewID()
	return p.time(ctx, appName, id, func() (time.Time, error) {
		if _, err := p.fabric.client.Send(ctx, appName, id, client.Text(toolName+" timed")); err != nil {
			return time.Time{}, err
		}
		select {
		case at := <-p.answers:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	})
}

// called makes a call without a session of its own making, and times it from before its input is sent.
func (p *parking) called(ctx context.Context, _ *client.Parked) (time.Duration, error) {
	id := protocol.NewID()
	return p.time(ctx, protocol.CallsApp, id, func() (time.Time, error) {
		from := time.Now()
		_, err := p.fabric.conn.Publish(ctx, natswire.Msg{Subject: p.fabric.conn.Names().InputSubject(protocol.CallsApp, "bench", id), Data: callInput(id)})
		return from, err
	})
}

// callInput is what a client sends that calls the tool.
func callInput(id string) []byte {
	data, err := protocol.Encode(protocol.Input{
		V: protocol.Version, ID: id, Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: toolName, Args: []byte(`{"text":"` + questionText + `"}`)},
	})
	if err != nil {
		panic(err) // of constants
	}
	return data
}

// time does something that lets a session's call start, and returns how long that took from the instant that begin returns.
// It waits for the session's rest: nobody is timed beside somebody else's end.
func (p *parking) time(ctx context.Context, app, session string, begin func() (time.Time, error)) (time.Duration, error) {
	p.mu.Lock()
	p.timed[session] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.timed, session)
		p.mu.Unlock()
	}()
	ended := make(chan struct{}, 1)
	mute, err := p.fabric.conn.Subscribe(p.fabric.conn.Names().LiveSubject(app, session), func(m natswire.Msg) {
		if ev, err := protocol.DecodeEvent(m.Data); err == nil && ev.Stop != nil && ev.Stop.Kind == protocol.StopDone {
			ended <- struct{}{}
		}
	})
	if err != nil {
		return 0, err
	}
	defer mute()
	from, err := begin()
	if err != nil {
		return 0, err
	}
	var took time.Duration
	for _, c := range []<-chan struct{}{nil, ended} {
		select {
		case s := <-p.starts:
			if s.session != session {
				return 0, fmt.Errorf("the call of session %s started, that of %s was to", s.session, session)
			}
			took = s.at.Sub(from)
		case <-c:
		case err := <-p.fabric.failed:
			return 0, err
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return took, nil
}

func spread(times []time.Duration) Spread {
	slices.Sort(times)
	return Spread{P50: micros(percentile(times, 50)), P99: micros(percentile(times, 99))}
}
