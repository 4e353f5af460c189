package embed

import (
	"os"
	"strconv"
)

// writeOwner leaves this process's id in the lock file, for whoever finds it locked.
func writeOwner(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
