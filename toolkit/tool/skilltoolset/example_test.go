package skilltoolset_test

import (
	"context"
	"fmt"

	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// A folder of skills as a toolset of an agent (llmagent.Config.Toolsets). A broken skill is reported beside the good ones.
func ExampleNew() {
	ctx := context.Background()
	source, err := skill.NewDirectorySource("testdata/skills")
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := skilltoolset.New(ctx, skilltoolset.Config{Source: source})
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, err := set.Tools(nil)
	for _, t := range tools {
		fmt.Println(t.Name(), err)
	}
	list, err := source.ListFrontmatters(ctx)
	for _, fm := range list {
		fmt.Println("skill", fm.Name)
	}
	faults, _ := skill.Broken(err)
	for _, f := range faults {
		fmt.Printf("%s:%d\n", f.File, f.Line)
	}
	// Output:
	// list_skills <nil>
	// load_skill <nil>
	// load_skill_resource <nil>
	// skill greeting-skill
	// skill weather-skill
	// testdata/skills/broken-skill/SKILL.md:3
}
