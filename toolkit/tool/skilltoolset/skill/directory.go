package skill

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolfabric/toolfabric/protocol"
)

// NewDirectorySource reads skills from the folders in dir, as NewFileSystemSource does. The system itself keeps every path
// inside dir (os.Root), however links are changed meanwhile; links that stay inside are followed. dir may be replaced while it
// is in use. It returns an *Error of code usage when dir is no folder that can be read.
func NewDirectorySource(dir string) (Source, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the folder of skills %s cannot be read", dir)
	}
	return &fileSystem{in: filepath.ToSlash(dir), open: func() (fs.FS, func() error, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, nil, err
		}
		return root.FS(), root.Close, nil
	}}, nil
}
