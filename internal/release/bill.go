package main

import (
	"debug/buildinfo"
	"encoding/json"
	"runtime"
	"strings"
	"time"
)

// bill writes what the command is made of (SBOM), as CycloneDX 1.5: the modules that Go has noted
// in the command itself.
func (b *builder) bill(built []platform) error {
	seen := map[string]bool{}
	components := []map[string]any{}
	add := func(kind, name, version, sum string) {
		if seen[name] {
			return
		}
		seen[name] = true
		c := map[string]any{"type": kind, "name": name, "version": version, "purl": "pkg:golang/" + name + "@" + version, "bom-ref": name + "@" + version}
		if sum != "" {
			c["properties"] = []map[string]string{{"name": "go:sum", "value": sum}}
		}
		components = append(components, c)
	}
	add("library", "std", strings.TrimPrefix(runtime.Version(), "go"), "")
	for _, p := range built { // some need modules that others do not
		command, err := b.command(p, "")
		if err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(command)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			add("library", m.Path, m.Version, m.Sum)
		}
	}
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp": b.time.Format(time.RFC3339),
			"component": map[string]any{
				"type": "application", "name": "calamp", "version": b.version, "bom-ref": "calamp",
				"licenses": []any{map[string]any{"license": map[string]string{"id": "BSD-3-Clause"}}},
			},
		},
		"components": components,
	}, "", "  ")
	if err != nil {
		return err
	}
	return b.write("calamp_"+strings.TrimPrefix(b.version, "v")+"_sbom.json", append(text, '\n'))
}
