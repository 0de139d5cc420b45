package console

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Object is a JSON object: names and values in turn, which keep their order. A name that ends in ? leaves its member out where the value is
// empty, as omitempty does, and the members of a value whose name is empty stand beside the others.
type Object []any

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) {
	var members [][]byte
	for i := 0; i < len(o); i += 2 {
		name, optional := strings.CutSuffix(o[i].(string), "?")
		if optional && empty(o[i+1]) {
			continue
		}
		value, err := unescaped(o[i+1])
		if err != nil {
			return nil, err
		}
		if name == "" {
			if len(value) > len("{}") && value[0] == '{' {
				members = append(members, value[1:len(value)-1])
			}
			continue
		}
		members = append(members, []byte(`"`+name+`":`+string(value)))
	}
	return []byte("{" + string(bytes.Join(members, []byte(","))) + "}"), nil
}

// unescaped is a value in JSON, with <, > and & as they are.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// empty reports what omitempty leaves out, and zero structs.
func empty(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map, reflect.Slice, reflect.String:
		return r.Len() == 0
	default:
		return r.IsZero()
	}
}
