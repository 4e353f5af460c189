// Package skilltoolset gives an agent skills: the model is told which there are, reads the instructions of the one that it
// needs, then the files that those name, and runs their scripts where that is allowed. Names follow Google's ADK.
//
// The tools only read, but run_skill_script. That one is there only when it is configured, asks a person before each call
// unless told otherwise, and runs scripts by interpreters that were named one by one, under the rules of package exectool: no
// shell, a process group and a folder of its own, an environment that holds nothing of the worker's. It is no sandbox.
package skilltoolset
