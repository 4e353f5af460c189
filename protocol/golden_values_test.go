package protocol

import "encoding/json"

// Values that golden files share. Ids are as long as real ones.
const (
	session  = "qk3v5x7z2a4c6e8g0i2k4m6o8q"
	call     = "b1d3f5h7j9l1n3p5r7t9v1x3z5"
	second   = "c2e4g6i8k0m2o4q6s8u0w2y4a6"
	worker   = "w2rtyuiopasdfghjklzxcvbnm2"
	owner    = "o4rtyuiopasdfghjklzxcvbnm4"
	adoption = "a6rtyuiopasdfghjklzxcvbnm6"
	event    = "e8rtyuiopasdfghjklzxcvbnm8"
	digest   = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	span     = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	noon     = 1793880000000
)

var (
	// What a parser of floats would round, and what json.Marshal would escape, stays as it is.
	args    = raw(`{"order":9007199254740993,"note":"<b>fish & chips</b>","amount":1.10}`)
	said    = raw(`{"role":"user","parts":[{"text":"Grüße an <alle>"}]}`)
	asked   = raw(`{"role":"model","parts":[{"functionCall":{"id":"f1","name":"refund","args":{"order":9007199254740993}},"thoughtSignature":"c2lnbmVk"}]}`)
	state   = map[string]json.RawMessage{"city": raw(`"Wien"`), "seen": raw(`null`), "temp:n": raw(`1`)}
	refusal = Result{V: Version, Outcome: OutcomeFailed, Code: CodeUnknownTool, Value: ErrorValue("no tool of that name")}

	declaration = Declaration{
		V: Version, Name: "refund", Description: "Refunds an order", Parameters: raw(`{"type":"object","properties":{"order":{"type":"integer"}}}`),
		Response: raw(`{"type":"object"}`), Effect: EffectAtMostOnce, LongRunning: true, Confirm: true,
		QueueTimeout: 30000, Timeout: 60000, Attempts: 3, MaxActive: 8,
	}
	completed = Result{
		V: Version, Outcome: OutcomeCompleted, Value: raw(`{"refunded":true,"rest":0.30}`), Body: &Ref{Name: "sha256-" + digest, SHA256: digest, Size: 1 << 20, Type: "application/json"},
		Actions: &Actions{StateDelta: state, SkipSummarization: true, Escalate: true, TransferToAgent: "clerk"},
		Worker:  worker, Attempt: 2, Started: noon + 100, Ended: noon + 250, Span: span,
	}
)

// ended is a result of a call that no tool answered.
func ended(o Outcome, c Code, text string) Result {
	return Result{V: Version, Outcome: o, Code: c, Value: ErrorValue(text), Worker: owner}
}

func at(ev Event) Event {
	ev.V, ev.ID, ev.Epoch, ev.At, ev.Snapshot = Version, event, 3, noon, 40
	return ev
}

// ordinary are the messages of calls that do not wait; see waiting for the others.
var ordinary = []golden{
	message("input_message", Input{V: Version, ID: "in-1", Kind: InputMessage, Content: said, StateDelta: state}, DecodeInput),
	message("input_call", Input{V: Version, ID: "in-2", Kind: InputCall, Call: &ClientCall{Tool: "refund", Args: args}}, DecodeInput),
	message("input_delete", Input{V: Version, ID: "in-3", Kind: InputDelete}, DecodeInput),

	message("event_adopt_inputs", at(Event{
		Adopt: &Adopt{Coordinator: owner, Adoption: adoption, Trace: span},
		Inputs: []FoldedInput{
			{ID: "in-1", Kind: InputMessage, Client: "me", Seq: 17, Sent: noon - 5, Trace: span, Content: said, StateDelta: state},
			{ID: "in-2", Kind: InputCall, Client: "me", Seq: 18, Sent: noon - 4, Call: &ClientCall{Tool: "refund", Args: args}},
			{ID: "in-3", Kind: InputMessage, Client: "you", Seq: 19, Sent: noon - 3, Refused: &Problem{Code: CodeTooLarge, Message: "the session's state would be larger than 256 KiB"}},
		},
	}), DecodeEvent),
	message("event_adopt_guarded", at(Event{
		Adopt:  &Adopt{Coordinator: owner, Adoption: adoption, Guard: 20},
		Inputs: []FoldedInput{{ID: "in-4", Kind: InputMessage, Client: "me", Seq: 20, Sent: noon - 2, Content: said}},
	}), DecodeEvent),
	message("event_answers_turn", at(Event{
		Answers: []Answer{{Call: call, Round: 1, Seq: 99, Result: completed}},
		Turn: &Turn{
			Agent: "assistant", AgentDigest: digest, Model: "gemini-flash-latest", RequestSeq: 41, Content: asked, Finish: "STOP",
			Usage: &Usage{Prompt: 120, Candidates: 30, Thoughts: 12, Cached: 64, Total: 162}, StateDelta: state,
			Calls: []Call{
				{ID: call, ProviderID: "f1", Tool: "refund", Args: args, Digest: digest, Effect: EffectAtMostOnce, Verdict: VerdictRun,
					AnswersTo: MailboxResults, Queue: 30000, Timeout: 60000, Budget: 95000, Span: span},
				{ID: second, ProviderID: "f2", Tool: "refnd", Args: raw(`{}`), Verdict: VerdictRefuse, Refusal: &refusal},
			},
			Started: noon - 900, Ended: noon - 1, Span: span,
		},
	}), DecodeEvent),
	message("event_turn_transfer", at(Event{
		Turn: &Turn{
			Agent: "assistant", Model: "gemini-flash-latest", RequestSeq: 41, Content: asked, Finish: "STOP",
			Calls: []Call{{ID: call, ProviderID: "f1", Tool: "transfer_to_agent", Args: raw(`{"agent_name":"billing"}`), Digest: digest, Effect: EffectRead,
				Verdict: VerdictAnswer, Answer: &Result{V: Version, Outcome: OutcomeCompleted, Value: raw(`{}`), Actions: &Actions{TransferToAgent: "billing"}}}},
		},
	}), DecodeEvent),
	message("event_answers_stop", at(Event{
		Answers: []Answer{{Call: call, Round: 0, Seq: 99, Result: Result{V: Version, Outcome: OutcomeFailed, Value: ErrorValue("no such order"), Worker: worker, Attempt: 1}}},
		Stop:    &Stop{Kind: StopDone, Problem: &Problem{Code: CodeModelFailed, Message: "the model could not be asked"}},
	}), DecodeEvent),
	message("event_stop_drained", at(Event{Stop: &Stop{Kind: StopDrained, Dispatched: map[string]Dispatch{call: {Seq: 99}, second: {}}}}), DecodeEvent),
	message("event_stop_later", at(Event{Stop: &Stop{Kind: StopDone, Listed: []string{call}}}), DecodeEvent),
	message("event_stop_quarantined", at(Event{
		Adopt: &Adopt{Coordinator: owner, Adoption: adoption},
		Stop:  &Stop{Kind: StopQuarantined, Problem: &Problem{Code: CodePoison, Message: "coordinators kept dying on this session without progress"}},
	}), DecodeEvent),
	message("event_stop_deleted", at(Event{Inputs: []FoldedInput{{ID: "in-3", Kind: InputDelete, Client: "me", Seq: 20, Sent: noon}}, Stop: &Stop{Kind: StopDeleted}}), DecodeEvent),
	message("event_snapshot", at(Event{State: raw(`{"app":"assistant","session":"` + session + `","at":1793880000000,"epoch":3,"seen":{}}`)}), DecodeEvent),

	message("envelope", Envelope{
		V: Version, App: "assistant", User: "me", Session: session, Agent: "assistant", Call: call, Round: 1, Tool: "refund", Digest: digest,
		Effect: EffectAtMostOnce, Args: args, AnswersTo: MailboxResults, StartBy: noon + 30000, Deadline: noon + 95000, Timeout: 60000, State: state,
	}, DecodeEnvelope),
	message("claim_worker", Claim{V: Version, Worker: worker, Attempt: 2}, strict),
	message("claim_coordinator", Claim{V: Version, Coordinator: owner, Code: CodeNoWorker}, strict),

	message("result_completed", completed, DecodeResult),
	message("result_failed", Result{V: Version, Outcome: OutcomeFailed, Value: ErrorValue("order 7 is unknown"), Worker: worker, Attempt: 1, Started: noon, Ended: noon + 3}, DecodeResult),
	message("result_cancelled", ended(OutcomeCancelled, CodeCancelled, "cancelled; the call was not executed"), DecodeResult),
	message("result_expired", ended(OutcomeExpired, CodeNoWorker, "no worker took the call in time; it was not executed"), DecodeResult),
	message("result_outcome_unknown", ended(OutcomeUnknown, CodeOutcomeUnknown, "whether the effect happened is unknown"), DecodeResult),

	message("registration", Registration{V: Version, Worker: worker, Declaration: declaration, Slots: 4, Active: 1, Host: "node-7", Started: noon, Draining: true, Waiting: true}, DecodeRegistration),
	message("accepted", Accepted{V: Version, Declaration: declaration, AcceptedAt: noon, Worker: worker}, DecodeAccepted),

	message("guard", Guard{V: Version, Coordinator: owner, Adoption: adoption, Expected: 41}, strict),
	message("own_request", OwnRequest{V: Version, App: "assistant", Session: session, Input: &FoldedInput{ID: "in-1", Kind: InputMessage, Client: "me", Seq: 17, Sent: noon, Content: said}}, strict),
	message("own_reply", OwnReply{V: Version, Mine: true, Folded: true}, strict),
	message("token", Token{Turn: 2, Text: "Let me ", Calls: []TokenCall{{ID: call, Tool: "refund"}}}, strict),
	message("progress", Progress{Worker: worker, Attempt: 2, Percent: 42.5, Message: "packing", Data: raw(`{"step":3}`)}, strict),
	message("progress_piece", Progress{Worker: worker, Attempt: 1, Message: "Once upon", Piece: true}, strict),
	message("progress_asks", Progress{Worker: worker, Attempt: 1, Message: "the MCP server asks: Who?", Asks: call}, strict),
	message("dead_letter", DeadLetter{
		V: Version, Code: CodeBadMessage, Reason: "invalid JSON at byte 2", Stream: "TF_INPUT", Subject: "tf.input.assistant.me." + session, Seq: 17,
		App: "assistant", Session: session, Tool: "refund", Call: call, Data: []byte(`{"`),
	}, strict),
}
