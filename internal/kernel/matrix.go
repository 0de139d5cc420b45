package kernel

import "github.com/calamp/calamp/internal/memory"

// Shape is how an M×N matrix lies in memory for the kernels. Packed, entry (µ, i) is at row µ
// mod Rows and column i mod Columns of block i/Columns of panel µ/Rows.
type Shape struct {
	M, N   int
	Blocks int // in a panel
	Layout Layout
}

// ShapeOf is the shape of a packed M×N matrix.
func ShapeOf(m, n int) Shape { return Shape{M: m, N: n, Blocks: (n + Columns - 1) / Columns} }

// Panels is the number of panels.
func (s Shape) Panels() int { return (s.M + Rows - 1) / Rows }

// PanelSize is the number of entries stored for a panel.
func (s Shape) PanelSize() int {
	if s.Layout == InRows {
		return Rows * s.N
	}
	return s.Blocks * blockSize
}

// BlockStep is how many entries further the next block of a panel starts.
func (s Shape) BlockStep() int { return s.Layout.blockStep() }

func (w Layout) blockStep() int {
	if w == InRows {
		return Columns
	}
	return blockSize
}

// rowStep is how many entries further the next row of a panel starts.
func (w Layout) rowStep(panelStep int) int {
	if w == InRows {
		return panelStep / Rows
	}
	return Columns
}

func (s Shape) offset(mu, i int) int {
	return (mu/Rows*s.Blocks+i/Columns)*blockSize + mu%Rows*Columns + i%Columns
}

// PackRow copies a row into the panels dst, as their row µ. It does not touch the
// padding.
func PackRow[T Entry](s Shape, dst []T, mu int, row []T) {
	for at := s.offset(mu, 0); len(row) > 0; at += blockSize {
		row = row[copy(dst[at:at+Columns], row):]
	}
}

// Matrix is a packed matrix.
type Matrix[T Entry] struct {
	Shape
	Data []T
}

// NewMatrix is a matrix of zeros.
func NewMatrix[T Entry](s Shape) *Matrix[T] {
	return &Matrix[T]{Shape: s, Data: memory.Large[T](s.Panels() * s.PanelSize())}
}

// Pack copies the M×N row-major matrix w.
func Pack[T Entry](m, n int, w []T) *Matrix[T] {
	p := NewMatrix[T](ShapeOf(m, n))
	for mu := range m {
		PackRow(p.Shape, p.Data, mu, w[mu*n:(mu+1)*n])
	}
	return p
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
