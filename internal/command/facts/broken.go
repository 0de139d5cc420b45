package facts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
)

// BrokenLines says which sensors were left out.
func BrokenLines(s *console.Summary, res *calamp.Result) {
	const shown = 8
	if len(res.BrokenSensors) == 0 {
		return
	}
	var words []string
	for _, b := range res.BrokenSensors[:min(shown, len(res.BrokenSensors))] {
		words = append(words, strconv.Itoa(b.Sensor))
	}
	text := strings.Join(words, ", ")
	if more := len(res.BrokenSensors) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	s.Line("broken", "%s, left out: %s", console.Plural(len(res.BrokenSensors), "sensor"), text)
}
