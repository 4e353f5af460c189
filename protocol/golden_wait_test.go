package protocol

import "slices"

// goldens are all messages.
var goldens = slices.Concat(ordinary, waiting)

const (
	confirmation = "k5rtyuiopasdfghjklzxcvbnm5"
	week         = 7 * 24 * 3600 * 1000
)

var (
	question = Confirmation{
		ID: confirmation, Hint: "Refund <1.10>?", Payload: raw(`{"amount":1.10}`), Origin: OriginTool, Digest: digest, Expires: noon + week,
		Need: 2, NotRequester: true, ToolDecides: true,
	}
	decision = Decision{Confirmed: true, Hint: "less", Payload: raw(`{"amount":1.05}`), Digest: digest, Args: raw(`{"order":9007199254740993,"amount":1.05}`)}
	wants    = Result{
		V: Version, Outcome: OutcomeAsks, Value: raw(`{"status":"waiting"}`), Ask: &Ask{Hint: question.Hint, Payload: question.Payload},
		Actions: &Actions{StateDelta: state}, Worker: worker, Attempt: 1, Started: noon, Ended: noon + 3, Span: span,
	}
	// slow is a declaration whose calls may wait.
	slow = func() Declaration { d := declaration; d.ParkTimeout = week; return d }()
)

// waiting are the messages of calls that wait for people or for results from outside.
var waiting = []golden{
	message("input_cancel", Input{V: Version, ID: "in-4", Kind: InputCancel, Target: call}, DecodeInput),

	message("event_turn_asks", at(Event{Turn: &Turn{
		Agent: "assistant", RequestSeq: 41, Content: asked,
		Calls: []Call{{ID: call, ProviderID: "f1", Tool: "refund", Args: args, Digest: digest, Effect: EffectAtMostOnce, Verdict: VerdictAsk, AnswersTo: MailboxWake,
			Queue: 30000, Timeout: 60000, Budget: 95000, Park: week, Span: span, LongRunning: true, Confirmation: &question}},
	}}), DecodeEvent),
	message("event_decisions", at(Event{Inputs: []FoldedInput{
		{ID: "approval-7", Kind: InputDecision, Client: "boss", Seq: 7, Sent: noon, Decision: &FoldedDecision{Confirmation: confirmation, Decision: decision, Asks: &question}},
		{ID: "approval-8", Kind: InputDecision, Client: "me", Seq: 8, Sent: noon, Decision: &FoldedDecision{Confirmation: confirmation, Decision: Decision{}},
			Refused: &Problem{Code: CodeDecided, Message: "it was decided before"}},
		{ID: "in-4", Kind: InputCancel, Client: "me", Seq: 21, Sent: noon, Target: call},
	}}), DecodeEvent),
	message("event_answers_parked", at(Event{
		Answers: []Answer{
			{Call: call, Round: 0, Seq: 99, Result: wants, Confirmation: &question},
			{Call: second, Round: 2, Seq: 100, Result: Result{V: Version, Outcome: OutcomePending, Value: raw(`{"ticket":"T-7"}`), Worker: worker, Attempt: 1}},
		},
		Stop: &Stop{Kind: StopParked, Dispatched: map[string]Dispatch{second: {Seq: 99, Taken: true}}},
	}), DecodeEvent),
	message("event_callbacks", at(Event{Turn: &Turn{Agent: "assistant", By: SpeakerBeforeModel, RequestSeq: 7,
		Content: raw(`{"role":"model","parts":[{"functionCall":{"name":"refund","args":{}}}]}`), StateDelta: state,
		Calls: []Call{
			{ID: call, Tool: "refund", Args: raw(`{}`), Verdict: VerdictAnswer, Answer: &Result{V: Version, Outcome: OutcomeCompleted, Value: raw(`{"ok":true}`)}},
			{ID: second, Tool: "refund", Args: raw(`{}`), Verdict: VerdictAsk, Shown: raw(`{"status":"held"}`),
				Confirmation: &Confirmation{ID: "q-3", Origin: OriginCallback, Digest: "d", Expires: noon}},
		}}}), DecodeEvent),
	message("event_after_agent", at(Event{Turn: &Turn{Agent: "assistant", RequestSeq: 7, Content: raw(`{"role":"model","parts":[{"text":"done"}]}`),
		After: raw(`{"role":"model","parts":[{"text":"bye"}]}`)}, Stop: &Stop{Kind: StopDone}}), DecodeEvent),
	message("event_stop_cancelled", at(Event{Stop: &Stop{Kind: StopCancelled, Problem: &Problem{Code: CodeCancelled, Message: "cancelled by me"}}}), DecodeEvent),

	message("envelope_confirmed", Envelope{
		V: Version, App: "assistant", User: "me", Session: session, Call: call, Round: 1, Tool: "refund", Digest: digest, Effect: EffectRead, Args: args,
		AnswersTo: MailboxWake, StartBy: noon + 30000, Deadline: noon + 95000, Timeout: 60000,
		Confirmation: &Confirmed{ID: confirmation, Confirmed: true, Hint: "less", Payload: raw(`{"amount":1.05}`)},
	}, DecodeEnvelope),
	message("result_asks", wants, DecodeResult),
	message("result_asks_provider", Result{V: Version, Outcome: OutcomeAsks, Ask: &Ask{Hint: "sure?", Provider: true}, Worker: worker, Attempt: 1}, DecodeResult),
	message("result_pending", Result{V: Version, Outcome: OutcomePending, Worker: worker, Attempt: 1, Started: noon, Ended: noon + 3}, DecodeResult),
	message("result_pending_value", Result{V: Version, Outcome: OutcomePending, Value: raw(`{"percent":40,"ticket":"T-7"}`)}, DecodeResult),
	message("result_denied", ended(OutcomeDenied, CodeDenied, `error tool "refund" call is rejected`), DecodeResult),

	message("decision", decision, func(data []byte) (Decision, error) { return DecodeDecision(data, confirmation) }),
	message("decision_denial", Decision{}, func(data []byte) (Decision, error) { return DecodeDecision(data, confirmation) }),
	message("receipt", Receipt{V: Version, Confirmation: confirmation, Approver: "boss", Seq: 7, Message: "it counts"}, strict),
	message("receipt_refused", Receipt{V: Version, Confirmation: confirmation, Approver: "boss", Seq: 8, Code: CodeDecided, Message: "it was decided before"}, strict),
	message("parked", Parked{
		V: Version, App: "assistant", Session: session, User: "me", Agent: "assistant", Call: call, Round: 1, Tool: "refund", Digest: digest, Effect: EffectAtMostOnce, Args: args,
		Confirmation: &question, Approvers: []string{"boss"}, Reply: "tf.approval.assistant." + session + "." + confirmation + ".*", Since: noon, Until: noon + week, Seq: 42, Trace: span,
	}, strict),
	message("registration_waits", Registration{V: Version, Worker: worker, Declaration: slow, Slots: 4, Started: noon}, DecodeRegistration),
	message("guard_parked", Guard{V: Version, Coordinator: owner, Adoption: adoption, Expected: 43, Park: true}, strict),
	message("own_request_answer", OwnRequest{V: Version, App: "assistant", Session: session, Answer: &Answer{Call: call, Round: 1, Seq: 99, Result: completed}, Tool: "refund"}, strict),
}
