// Package groups is calamp groups: files that say which entries of a signal share a prior.
package groups

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// size is --dct2: the height and width of images.
type size struct{ height, width int }

func (s *size) String() string { return "" }

func (s *size) Type() string { return "HxW" }

func (s *size) Set(text string) error {
	h, w, _ := strings.Cut(text, "x")
	height, errH := strconv.Atoi(h)
	width, errW := strconv.Atoi(w)
	if errH != nil || errW != nil || height < 1 || width < 1 || height > mostPixels/width {
		return fmt.Errorf("expected a height and a width, as in 28x28, of at most %d pixels", mostPixels)
	}
	s.height, s.width = height, width
	return nil
}

const mostPixels = 1 << 26

// Command is calamp groups.
func Command(a *console.Console) *cobra.Command {
	var image size
	var bands int
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "groups --dct2 HxW --bands K -o G.npy",
		Short: "Make a file that says which entries of the signals have the same prior",
		Long: `Make a file for --groups: the group of each entry of the signals, from 0 on. Entries
of a group have the same prior, with a density, mean and variance of their own.

--dct2 is for images in the basis of two-dimensional cosines, --basis dct2:HxW:
group 0 is the image's mean, the others are bands of frequency, of equal width in
its logarithm. With 1xN they are those of --basis dct:N.

A file of one's own is a .npy with N whole numbers, from 0 on without gaps.`,
		Example: `  calamp groups --dct2 33x33 --bands 14 -o G.npy
  calamp solve P.npz --basis dct2:33x33 --groups G.npy -o R.npz`,
		Args: console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if image.height == 0 || out == "" {
				return console.Usage("groups of what, and where to?").WithHint("calamp groups --dct2 HxW --bands K -o G.npy")
			}
			if err := (console.Outputs{console.File("-o", out)}).Check(asJSON); err != nil {
				return err
			}
			of, err := operator.Bands(image.height, image.width, bands)
			if err != nil {
				return console.Usage("--bands: %w", err)
			}
			if err := dataset.SaveIntegers(out, "groups", of); err != nil {
				return err
			}
			entries := make([]int, bands) // of each group
			for _, g := range of {
				entries[g]++
			}
			if asJSON {
				return a.PrintJSON(console.Object{"n", len(of), "groups", entries, "written", out})
			}
			var text console.Summary
			text.Line("groups", "%s of %s", console.Plural(bands, "group"), console.Plural(len(of), "entry"))
			text.Line("sizes", "%s", strings.Trim(fmt.Sprint(entries), "[]"))
			text.Line("written", "%s", out)
			return a.Print(text.String())
		},
	}
	flags := cmd.Flags()
	flags.Var(&image, "dct2", "height and width of the images, whose cosines are the entries")
	bands = 14
	flags.Var(option.Count(&bands, 1), "bands", "groups, bands of frequency")
	option.Output(flags, &out, "write the groups to this .npy or .mat")
	option.JSON(flags, &asJSON, "the summary")
	return cmd
}
