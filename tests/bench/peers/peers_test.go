package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

var small = Config{Rounds: 2, Single: 3, Calls: 10, Many: 4, Longest: time.Minute}

func peerOf(system string, call Call, err error) Peer {
	return Peer{System: system, Durability: "none", Notes: "made up", Open: func(context.Context, *Env) (Call, func(), error) {
		return call, func() {}, err
	}}
}

func echo(_ context.Context, _ int, text string) (string, error) { return text, nil }

func TestAPeerThatCannotBeHadIsInTheTableWithItsReason(t *testing.T) {
	var talk bytes.Buffer
	report, err := measureAll(t.Context(), []Peer{
		peerOf("Quick", echo, nil), peerOf("Absent", nil, errors.New("no server\nhere")),
	}, &Env{Log: &talk}, small)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := report.Print(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| Absent | none | not measured: no server here |", "| Quick | none | 0.00 |", "- Quick: made up."} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if q := report.Rows[0]; q.Rate <= 0 || q.Calls != small.Calls || q.Missing != "" {
		t.Errorf("%+v", q)
	}
	if data, err := json.Marshal(report); err != nil || !bytes.Contains(data, []byte(`"missing":"no server here"`)) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestAWrongAnswerEndsTheMeasurement(t *testing.T) {
	wrong := func(context.Context, int, string) (string, error) { return "no", nil }
	_, err := measureAll(t.Context(), []Peer{peerOf("Wrong", wrong, nil)}, &Env{Log: &bytes.Buffer{}}, small)
	if !errors.Is(err, errWrongAnswer) || !strings.Contains(err.Error(), "Wrong") {
		t.Errorf("got %v", err)
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-in-flight", "1000"}, {"-output", "xml"}, {"-nonsense"}} {
		if err := run(t.Context(), args, nil, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: accepted", args)
		}
	}
}
