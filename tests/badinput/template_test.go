package badinput

import (
	"github.com/nats-io/nats-server/v2/server"
)

// The permissions of each role in the namespace tf: what it needs and nothing else. Everybody listens on its own inbox only.
// An operator has no restrictions.

func user(name string, publish, subscribe []string) *server.User {
	return &server.User{Username: name, Password: "pw", Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: append(subscribe, inbox(name)+".>")},
	}}
}

// workerUser may serve one tool, as one worker.
func workerUser(tool, worker string) *server.User {
	return user("w_"+tool, []string{
		"$JS.API.CONSUMER.INFO.CALLS." + tool, "$JS.API.CONSUMER.MSG.NEXT.CALLS." + tool, "$JS.ACK.CALLS." + tool + ".>",
		"tf.result." + tool + ".*.*.*", "tf.wake.*." + tool + ".*.*.*", "tf.claim." + tool + ".*.*", "tf.progress." + tool + ".*.*", "tf.reg." + tool + "." + worker,
		"tf.dlq.call.*", "tf.dlq.late.*",
	}, []string{"tf.cancel." + tool + ".*"})
}

// coordinatorUser may drive every session. Consumers are made on the streams it pulls from, and for tools.
func coordinatorUser() *server.User {
	return user("coordinator", []string{
		"tf.call.*", "tf.log.*.*", "tf.result.*.*.*.*", "tf.wake.*.*.*.*.*", "tf.claim.*.*.*", "tf.timer.*.*.*", "tf.dlq.*.*",
		"tf.own.*", "tf.cancel.*.*", "tf.token.*.*", "tf.receipt.*.*.*", "$KV.TOOLS.>", "$KV.PARK.>", "$O.OBJ.>", "_INBOX_coordinator.>",
		"$JS.API.CONSUMER.CREATE.INPUT.*.tf.input.>", "$JS.API.CONSUMER.CREATE.TIMERS.*.tf.due.>", "$JS.API.CONSUMER.CREATE.CALLS.*.tf.call.*",
		"$JS.API.CONSUMER.CREATE.WAKE.*.tf.wake.>", "$JS.API.CONSUMER.CREATE.APPROVAL.*.tf.approval.>",
		"$JS.API.CONSUMER.INFO.WAKE.*", "$JS.API.CONSUMER.INFO.APPROVAL.*", "$JS.API.CONSUMER.MSG.NEXT.WAKE.*", "$JS.API.CONSUMER.MSG.NEXT.APPROVAL.*",
		"$JS.ACK.WAKE.>", "$JS.ACK.APPROVAL.>", "$JS.API.STREAM.MSG.GET.WAKE", "$JS.API.STREAM.MSG.GET.TIMERS", "$JS.API.STREAM.MSG.GET.APPROVAL", "$JS.API.STREAM.MSG.GET.KV_PARK",
		"$JS.API.CONSUMER.CREATE.DLQ.poison.>", "$JS.API.CONSUMER.INFO.INPUT.*", "$JS.API.CONSUMER.INFO.TIMERS.*", "$JS.API.CONSUMER.INFO.CALLS.*",
		"$JS.API.CONSUMER.INFO.DLQ.poison", "$JS.API.CONSUMER.MSG.NEXT.INPUT.*", "$JS.API.CONSUMER.MSG.NEXT.TIMERS.*", "$JS.API.CONSUMER.MSG.NEXT.DLQ.poison",
		"$JS.ACK.INPUT.>", "$JS.ACK.TIMERS.>", "$JS.ACK.DLQ.poison.>",
		"$JS.API.STREAM.MSG.GET.LOG", "$JS.API.STREAM.MSG.GET.RESULTS", "$JS.API.STREAM.MSG.GET.CALLS", "$JS.API.STREAM.MSG.GET.KV_TOOLS", "$JS.API.STREAM.MSG.GET.OBJ_OBJ",
		"$JS.API.DIRECT.GET.LOG", "$JS.API.DIRECT.GET.KV_TOOLS", "$JS.API.DIRECT.GET.REG", "$JS.API.DIRECT.GET.OBJ_OBJ",
		"$JS.API.STREAM.INFO.KV_TOOLS", "$JS.API.STREAM.INFO.REG", "$JS.API.STREAM.MSG.GET.OBJ_SKILLS", "$JS.API.DIRECT.GET.OBJ_SKILLS",
		"$JS.API.STREAM.PURGE.TIMERS", "$JS.API.STREAM.PURGE.LOG", "$JS.API.STREAM.PURGE.OBJ_OBJ", "$JS.API.STREAM.MSG.DELETE.CALLS",
	}, []string{"tf.own.*", "tf.done.>", "tf.reg.*.*"})
}

// approverUser may decide confirmations as itself, and see what waits.
func approverUser(name string) *server.User {
	return user(name, []string{"tf.approval.*.*.*." + name, "$JS.API.STREAM.MSG.GET.KV_PARK", "$JS.API.DIRECT.GET.KV_PARK"}, []string{"tf.receipt.*.*.*", "$KV.PARK.>"})
}

// clientUser may speak as itself to every app, and read every session of the account: reads of a stream cannot be scoped
// by subject. Whoever must not read others' sessions gets an account of its own.
func clientUser(name string) *server.User {
	return user(name, []string{
		"tf.input.*." + name + ".*", "$JS.API.CONSUMER.INFO.INPUT.*", "$JS.API.CONSUMER.INFO.CALLS.*",
		"$JS.API.STREAM.MSG.GET.LOG", "$JS.API.STREAM.MSG.GET.OBJ_OBJ", "$JS.API.DIRECT.GET.LOG", "$JS.API.DIRECT.GET.RESULTS", "$JS.API.DIRECT.GET.WAKE",
		"$JS.API.DIRECT.GET.KV_TOOLS", "$JS.API.DIRECT.GET.REG", "$JS.API.DIRECT.GET.OBJ_OBJ", "$JS.API.DIRECT.GET.KV_PARK",
	}, []string{"tf.live.*.*", "tf.token.*.*", "tf.progress.*.*.*", "tf.done.*", "tf.receipt.*.*.*"})
}

func roles(o *server.Options) {
	o.Users = []*server.User{
		{Username: "operator", Password: "pw"},
		coordinatorUser(), workerUser("add", "w-add"), workerUser("slow", "w-slow"), clientUser("tester"), clientUser("mallory"), approverUser("ann"),
	}
}

var everybody = logins{operator: "operator", coordinator: "coordinator", worker: "w_add", client: "tester", mallory: "mallory"}
