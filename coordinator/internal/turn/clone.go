package turn

import (
	"maps"
	"reflect"

	"github.com/toolfabric/toolfabric/toolkit/model"
)

// clone is a copy of v that shares nothing with it that can be changed, as far as v is data: functions, channels and structs
// with fields that cannot be seen are taken as they are. v holds no cycles.
func clone[T any](v T) T {
	var out T
	copyValue(reflect.ValueOf(&out).Elem(), reflect.ValueOf(&v).Elem())
	return out
}

// cloneRequest is a copy of req for code that may change it: contents are shared between requests. Tools are none of data.
func cloneRequest(req *model.LLMRequest) *model.LLMRequest {
	return &model.LLMRequest{Model: req.Model, Contents: clone(req.Contents), Config: clone(req.Config), Tools: maps.Clone(req.Tools)}
}

func copyValue(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyValue(to.Elem(), from.Elem())
		}
	case reflect.Interface:
		if !from.IsNil() {
			v := reflect.New(from.Elem().Type()).Elem()
			copyValue(v, from.Elem())
			to.Set(v)
		}
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		if isScalar(from.Type().Elem().Kind()) {
			reflect.Copy(to, from)
			return
		}
		for i := range from.Len() {
			copyValue(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for it := from.MapRange(); it.Next(); {
			v := reflect.New(from.Type().Elem()).Elem()
			copyValue(v, it.Value())
			to.SetMapIndex(it.Key(), v)
		}
	case reflect.Struct:
		to.Set(from)
		for i := range from.NumField() {
			if f := from.Type().Field(i); f.IsExported() && !isScalar(f.Type.Kind()) {
				to.Field(i).SetZero()
				copyValue(to.Field(i), from.Field(i))
			}
		}
	default:
		to.Set(from)
	}
}

func isScalar(k reflect.Kind) bool {
	return k < reflect.Array || k == reflect.String // bool and the numbers
}
