package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"strings"
)

// debian builds a package, after deb(5): an archive of ar(1) with the version of the format, what is
// said of the package, and its files.
func (b *builder) debian(p platform, binary []byte, contents []file) error {
	version := strings.NewReplacer("-", "~", "+", "~").Replace(strings.TrimPrefix(b.version, "v"))
	files := []file{{"./usr/bin/calamp", 0o755, binary}}
	for _, f := range contents {
		name, _ := strings.CutPrefix(f.name, "man/man1/")
		switch f.name {
		case "completions/calamp.bash":
			f.name = "./usr/share/bash-completion/completions/calamp"
		case "completions/calamp.zsh":
			f.name = "./usr/share/zsh/vendor-completions/_calamp"
		case "completions/calamp.fish":
			f.name = "./usr/share/fish/vendor_completions.d/calamp.fish"
		case "LICENSE":
			f.name = "./usr/share/doc/calamp/copyright"
		case "README.md", "CITATION.cff", "THIRD_PARTY_NOTICES", "CHANGELOG.md", "matlab/calamp.m":
			f.name = "./usr/share/doc/calamp/" + f.name
		default:
			if name == f.name {
				continue // of other systems
			}
			packed, err := gzipped(f.content)
			if err != nil {
				return err
			}
			f.name, f.content = "./usr/share/man/man1/"+name+".gz", packed
		}
		files = append(files, f)
	}
	var sums strings.Builder
	size := 0
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.content), strings.TrimPrefix(f.name, "./"))
		size += len(f.content)
	}
	control := fmt.Sprintf(`Package: calamp
Version: %s
Architecture: %s
Maintainer: calamp <calamp@users.noreply.github.com>
Installed-Size: %d
Section: science
Priority: optional
Homepage: https://github.com/calamp/calamp
Description: blind calibration from sparse signals
 Recovers sparse signals from readings of sensors whose gains are unknown, and
 the gains with them, with error bars for both; offline and on streams, with
 the theory that says beforehand how many sensors it takes.
`, version, p.machine, (size+1023)/1024)
	about, err := tarred([]file{{"./control", 0, []byte(control)}, {"./md5sums", 0, []byte(sums.String())}}, b.time)
	if err != nil {
		return err
	}
	data, err := tarred(files, b.time)
	if err != nil {
		return err
	}
	var ar bytes.Buffer
	ar.WriteString("!<arch>\n")
	for _, member := range []file{{"debian-binary", 0, []byte("2.0\n")}, {"control.tar.gz", 0, about}, {"data.tar.gz", 0, data}} {
		fmt.Fprintf(&ar, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.name, b.time.Unix(), 0, 0, 0o100644, len(member.content))
		ar.Write(member.content)
		if len(member.content)%2 == 1 {
			ar.WriteByte('\n')
		}
	}
	return b.write(fmt.Sprintf("calamp_%s_%s.deb", version, p.machine), ar.Bytes())
}

func gzipped(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
