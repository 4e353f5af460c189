package agentfile

import (
	"math"
	"reflect"
	"time"

	"github.com/goccy/go-yaml/ast"
)

func (r *reader) integer(path string, n ast.Node, v reflect.Value) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		r.wrongType(path, n, "a whole number")
		return
	}
	var value int64
	switch x := i.Value.(type) {
	case int64:
		value = x
	case uint64:
		ok = x <= math.MaxInt64
		value = int64(x)
	default:
		ok = false
	}
	if !ok || v.OverflowInt(value) {
		r.fault(placeOf(n), "%s: %s is out of range", path, n.String())
		return
	}
	v.SetInt(value)
}

func (r *reader) duration(path string, n ast.Node, v reflect.Value) {
	s, ok := scalarText(n)
	d, err := time.ParseDuration(s)
	if !ok || err != nil {
		r.fault(placeOf(n), "%s is no duration: write a number with its unit, such as 90s, 15m or 1h", path)
		return
	}
	v.SetInt(int64(d))
}

func number(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.FloatNode:
		return n.Value, true
	case *ast.IntegerNode:
		switch x := n.Value.(type) {
		case int64:
			return float64(x), true
		case uint64:
			return float64(x), true
		}
	}
	return 0, false
}
