package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
)

// exactZero is the channel of further rows (see [operator.Centred]): they read zero, without
// noise.
type exactZero struct{}

// Validate implements [channel.Channel].
func (exactZero) Validate() error { return nil }

// Output implements [channel.Channel]: g = -ω/V, ∂g = -1/V.
func (exactZero) Output(b *channel.Block) {
	for row := range b.Rows() {
		b.LogZ[row] = 0
		for k := row * b.P; k < (row+1)*b.P; k++ {
			omega, v := b.Omega[k], b.V[k]
			b.G[k], b.DG[k] = -omega/v, -1/v
			b.LogZ[row] -= 0.5 * (omega*(omega/v) + math.Log(2*math.Pi*v))
		}
	}
}
