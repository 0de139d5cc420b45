package figure

import "image/color"

// Theme selects colours for a light or a dark page.
type Theme uint8

const (
	Light Theme = iota
	Dark
)

// Color names a colour of the palette. Its exact value depends on the theme.
type Color uint8

const (
	Auto    Color = iota // the next one that the figure has not used
	Blue                 //
	Orange               // a vermilion, for contrast on white
	Green                //
	Purple               //
	Ochre                //
	Sky                  //
	Neutral              // grey, for references and truths
)

// colors of a theme. The palettes follow M. Okabe and K. Ito, "Color universal
// design" (2008), which people with any common colour blindness can tell apart,
// made darker or lighter where needed: each has a contrast of at least 3:1 with
// its background (WCAG 2.1, 1.4.11), text at least 4.5:1 (1.4.3).
type colors struct {
	back, text, axis, grid color.NRGBA
	palette                [Neutral]color.NRGBA // from Blue on
}

func (t Theme) colors() *colors {
	if t == Dark {
		return &dark
	}
	return &light
}

var light = colors{
	back: rgb(0xffffff),
	text: rgb(0x33383f),
	axis: rgb(0x767c85),
	grid: rgb(0xe6e8eb),
	palette: [...]color.NRGBA{
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x00896a), rgb(0xb3568c), rgb(0x9a7200), rgb(0x3191c9),
		rgb(0x767c85),
	},
}

var dark = colors{
	back: rgb(0x15181d),
	text: rgb(0xd5d9df),
	axis: rgb(0x858c97),
	grid: rgb(0x2b3038),
	palette: [...]color.NRGBA{
		rgb(0x56b4e9), rgb(0xff8a4c), rgb(0x2fc79a), rgb(0xe79bc7), rgb(0xf0d24a), rgb(0xa9b8ff),
		rgb(0x9aa1ac),
	},
}

// of gives the colour of the series that is the i-th to choose automatically.
func (c *colors) of(name Color, i int) color.NRGBA {
	if name == Auto || name > Neutral {
		name = Blue + Color(i%int(Sky-Blue+1))
	}
	return c.palette[name-Blue]
}

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

func faded(c color.NRGBA, opacity float64) color.NRGBA {
	if opacity > 0 && opacity < 1 {
		c.A = uint8(opacity*float64(c.A) + 0.5)
	}
	return c
}
