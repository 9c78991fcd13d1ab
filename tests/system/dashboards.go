// SPDX-License-Identifier: Apache-2.0

// dashboards FILE...: judges dashboards by the types that Grafana's makers generate of its schemas. No field may be
// missing, unknown or of another type. Built by build-dashboards.sh.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/grafanapyroscope"
)

// The module calls an empty list of errors an error, too.
func real(err error) error {
	var found cog.BuildErrors
	if errors.As(err, &found) && len(found) == 0 {
		return nil
	}
	return err
}

// The module does not find out by itself that these are queries of Pyroscope.
func judgeQueries(raw []byte) error {
	var d struct {
		Panels []struct{ Targets []json.RawMessage }
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			var of struct{ Datasource struct{ Type string } }
			if err := json.Unmarshal(target, &of); err != nil {
				return err
			}
			if of.Datasource.Type != "grafana-pyroscope-datasource" {
				continue
			}
			var query grafanapyroscope.Dataquery
			if err := real(query.UnmarshalJSONStrict(target)); err != nil {
				return err
			}
		}
	}
	return nil
}

func judge(name string) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var d dashboard.Dashboard
	if err := real(d.UnmarshalJSONStrict(raw)); err != nil {
		return err
	}
	if err := d.Validate(); err != nil {
		return err
	}
	return judgeQueries(raw)
}

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, name := range os.Args[1:] {
		if err := judge(name); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			status = 1
		}
	}
	os.Exit(status)
}
