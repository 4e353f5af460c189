// Package skill reads skills: folders with a file SKILL.md, instructions for a model below a frontmatter, and beside it what
// those instructions refer to, in references/, assets/ and scripts/. The format is that of https://agentskills.io/specification;
// names follow Google's ADK.
//
// Skills come from others, so that nothing in them is taken on trust: names and paths are checked before they are used, YAML
// has no aliases and no depth to speak of, every size has a limit, and text that its reader cannot see is refused. A broken
// skill is reported with its file and line, and takes down no other one.
package skill
