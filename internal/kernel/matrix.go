package kernel

// Matrix is an M×N matrix packed for the kernels: entry (µ, i) is at row µ mod
// Rows and column i mod Columns of block i/Columns of panel µ/Rows.
type Matrix[T Entry] struct {
	M, N   int
	Blocks int // in a panel
	Data   []T
}

// Pack copies the M×N row-major matrix w.
func Pack[T Entry](m, n int, w []T) *Matrix[T] {
	p := &Matrix[T]{M: m, N: n, Blocks: (n + Columns - 1) / Columns}
	p.Data = make([]T, p.Panels()*p.PanelSize())
	for mu := range m {
		row := w[mu*n : (mu+1)*n]
		for at := p.offset(mu, 0); len(row) > 0; at += blockSize {
			row = row[copy(p.Data[at:at+Columns], row):]
		}
	}
	return p
}

// Panels is the number of panels.
func (p *Matrix[T]) Panels() int { return (p.M + Rows - 1) / Rows }

// PanelSize is the number of entries stored for a panel.
func (p *Matrix[T]) PanelSize() int { return p.Blocks * blockSize }

func (p *Matrix[T]) offset(mu, i int) int {
	return (mu/Rows*p.Blocks+i/Columns)*blockSize + mu%Rows*Columns + i%Columns
}

// At returns entry (mu, i).
func (p *Matrix[T]) At(mu, i int) float64 { return float64(p.Data[p.offset(mu, i)]) }

// RowInto copies row mu into dst, of length N.
func (p *Matrix[T]) RowInto(dst []float64, mu int) {
	dst = dst[:p.N]
	for at := p.offset(mu, 0); len(dst) > 0; at += blockSize {
		count := min(Columns, len(dst))
		for i, w := range p.Data[at : at+count] {
			dst[i] = float64(w)
		}
		dst = dst[count:]
	}
}
