package calamp

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/solver"
)

// Where gains and signals make up for each other, as in tomography, message passing has several fixed points. Signals that are integrated out show which of them is likeliest, and sensors of several rows
// cannot do that. Instead AMP begins at three places: at the prior, where vector AMP has come to from there, and where vector AMP has come to from the first answer of AMP. The likeliest is the answer;
// the evidence of AMP judges all three, since that of vector AMP is larger by 10 to 17 for the same signals. Of 48 tomographic images (experiments/tomography, seeds 1 to 48) 40 are found, and 24 were before. The
// 8 others all have starts that end apart, and so have 6 that are found; their evidence does not tell them from these. With a range of s given, the answer that takes it for the whole truth is a fourth start: 33 of the 48 are answers
// and all of these are right; when that answer was asked alone, four of the images 25 to 36 were 3 to 34 % wrong with exit 0, and one of them still is of no use.

// alternates reports whether starts of both algorithms are to be compared: there is no answer yet, or one whose gains and signals may make up for each other.
func alternates(first *try) bool {
	return startsCompare(first) && !(first.settled() && !first.res.warns(GainsInSignals))
}

// startsCompare reports whether starts can be compared.
func startsCompare(first *try) bool {
	known := channel.ColumnsOf(first.problem.Channel) == 1 && first.opt.Learn.Range
	return known && first.problem.rows.rowsEach() > 1 && again(first) && !tooLong(first) && first.opt.Algorithm == solver.AutoAlgorithm
}

// alternate solves by AMP from all three places, and from the likeliest with what the first try looks for.
func (t *tries) alternate(first *try) error {
	given := t.givenAnswer()
	amp, vector := t.passed(first, solver.AMP, nil), t.passed(first, solver.VAMP, nil)
	fromVector := t.passed(first, solver.AMP, vector)
	again := t.passed(first, solver.AMP, t.passed(first, solver.VAMP, amp))
	amp, t.apart = likelierOf(amp, again)
	amp, t.apart = likelierOf(amp, fromVector)
	if given != nil { // is a start like the others
		if fromGiven := t.passed(first, solver.AMP, given); fromGiven != nil && (amp == nil || fromGiven.score() > amp.score()) {
			amp, t.apart = fromGiven, amp
		}
	}
	if amp != nil && !amp.trusted() {
		if further := t.passed(first, solver.AMP, amp); further != nil {
			amp = further
		}
	}
	if err := t.ctx.Err(); err != nil || amp == nil {
		return err
	}
	t.plainly = amp
	if withoutFaults(first) == nil { // it looks for nothing else
		return nil
	}
	return t.run(first.begunAt(amp))
}

// givenAnswer is the answer with what was given for the whole truth; nil where there is none.
func (t *tries) givenAnswer() *try {
	if best := t.likeliest(); t.given && best.trusted() {
		return best
	}
	return nil
}

// likelierOf are two tries, the likelier one first; nil is none.
func likelierOf(a, b *try) (likelier, other *try) {
	if a == nil || b != nil && b.score() > a.score() {
		return b, a
	}
	return a, b
}

// passed solves by that algorithm with all sensors and readings taken for good, from that try on, or from the prior; nil where that is impossible, or the context has ended. Vector AMP only says where to begin: it is not taken as a try.
func (t *tries) passed(first *try, algorithm solver.Algorithm, from *try) *try {
	if t.ctx.Err() != nil {
		return nil
	}
	p, opt := plain(first)
	a := &try{name: fmt.Sprintf("%v, all sensors and readings taken for good", algorithm), problem: p}
	opt.Algorithm, opt.MaxIter = algorithm, first.opt.limit()
	if algorithm == solver.VAMP {
		opt.MaxIter = min(opt.MaxIter, mostFromStart)
	}
	if from != nil {
		a.name += ", begun at the answer of: " + from.name
		p.beginAt(&opt, from.res)
	}
	a.opt = opt
	if algorithm == solver.AMP {
		t.run(a) // its error is that of the context
	} else {
		t.count++
		a.solve(t.ctx, t.count)
	}
	if t.ctx.Err() != nil {
		return nil
	}
	return a.orNil()
}

// orNil is the try, or nil where it has no result to begin at.
func (t *try) orNil() *try {
	if t.res == nil || t.res.Status == Diverged {
		return nil
	}
	return t
}

// beginAt makes a run begin at that result, with its model.
func (p *Problem) beginAt(opt *Options, res *Result) {
	p.Prior = res.Prior
	if c, ok := channel.InOrder(p.Channel).(channel.Noisy); ok {
		p.Channel = channel.WithInOrder(p.Channel, c.WithNoise(channel.NoiseOf(channel.InOrder(res.Channel))))
	}
	opt.from = res
}

// startsCompared adds to the variances of an answer what two starts of message passing are apart, at the best common scale, where that is more than their error bars.
func (t *tries) startsCompared(answer *try) {
	if t.apart == nil || answer.res.Status != Converged {
		return
	}
	here, there := t.plainly.res, t.apart.res
	apart, scale := diagnosis.Compare(here.half(), there.half(), nil), commonScale(here, there)
	var square mat.Dense
	square.Scale(-scale, there.X)
	square.Add(here.X, &square)
	square.MulElem(&square, &square)
	ratio := mat.Sum(&square) / mat.Sum(here.XVar)
	if ratio <= 1 && !apart.Disagree() {
		return
	}
	answer.res.XVar.Add(answer.res.XVar, &square)
	answer.res.widenGains(1 + 2*apart.Ratio) // which is in units of both variances
	answer.res.Status = NotConverged
	answer.res.Reason = fmt.Sprintf("message passing from another start comes to other signals and gains, of a log-evidence of %.4g in place of %.4g: gains and signals make up for each other, and there may be further answers", t.apart.score(), t.plainly.score())
	answer.res.Warnings = append(answer.res.Warnings, Warning{Code: FitsDisagree, Message: fmt.Sprintf(
		"message passing from two starts has signals that differ by %.2g, and gains by %.2g, times their error bars (root mean square); the difference was added to the variances",
		math.Sqrt(ratio), math.Sqrt(apart.Ratio))})
}

// half is what a result has of gains, to be compared with those of another.
func (r *Result) half() diagnosis.Half {
	return diagnosis.Half{S: r.complexOrRealS(), Var: r.knownVar()}
}

// commonScale is the factor that brings s of the second result nearest to that of the first.
func commonScale(here, there *Result) float64 {
	product, power := 0.0, 0.0
	for mu, v := range here.knownVar() {
		w := 1 / (v + there.SVar[mu])
		product, power = product+w*here.S[mu]*there.S[mu], power+w*there.S[mu]*there.S[mu]
	}
	return product / power
}
