// Package strictyaml reads our YAML files so that a person can mend them in one go: every fault is reported, each with
// file, line and column. Unknown and repeated keys, a second document, anchors, aliases, tags and merge keys are faults.
package strictyaml
