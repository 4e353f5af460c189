package invoke

import (
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/toolfabric/toolfabric/protocol"
)

// decodeArgs makes what Runnable.Run takes: a map whose numbers are float64, as encoding/json makes them, but for those
// that would lose a digit: these are json.Number.
func decodeArgs(raw json.RawMessage) (map[string]any, error) {
	v, err := decodeAny(raw)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m, nil
}

// Map is an encoded answer as Runnable.Run returns it: an object as a map, anything else under the key "result", null as
// nil. Numbers are as Floats leaves them.
func Map(answer json.RawMessage) (map[string]any, error) {
	v, err := decodeAny(answer)
	if err != nil || v == nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok {
		return m, nil
	}
	return map[string]any{"result": v}, nil
}

func decodeAny(raw []byte) (any, error) {
	v, err := protocol.Tree(raw)
	if err != nil {
		return nil, err
	}
	return Floats(v), nil
}

// Floats replaces in v, a value decoded with UseNumber, each json.Number by the float64 that is exactly it. Where there
// is none the json.Number stays.
func Floats(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch e.(type) {
			case json.Number, map[string]any, []any:
				v[k] = Floats(e)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = Floats(e)
		}
	case json.Number:
		if f, ok := exactFloat(string(v)); ok {
			return f
		}
	}
	return v
}

func exactFloat(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	if len(s) <= 15 || strconv.FormatFloat(f, 'f', -1, 64) == s {
		return f, true // 15 digits always survive
	}
	if i, ok := new(big.Int).SetString(s, 10); ok {
		back, _ := big.NewFloat(f).Int(nil)
		return f, back.Cmp(i) == 0
	}
	return f, true // a fraction is a float by nature
}
