package skilltoolset

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// Sizes of what a model is shown of a file, in bytes. A larger text is refused. Other larger files are kept in the object
// store, where the fabric gives tools one, and named in the answer; elsewhere they are refused too.
const (
	MaxText   = 256 << 10
	MaxBinary = 64 << 10
)

// file is a file of a skill as a model reads it: a text has content, anything else the rest.
type file struct {
	SkillName     string        `json:"skill_name"`
	Path          string        `json:"path"`
	Content       *string       `json:"content,omitempty"`
	MediaType     string        `json:"media_type,omitempty"`
	SizeBytes     int           `json:"size_bytes,omitempty"`
	ContentBase64 string        `json:"content_base64,omitempty"`
	Reference     *protocol.Ref `json:"reference,omitempty"`
}

func (s *SkillToolset) loadResource() (tool.Tool, error) {
	type args struct {
		SkillName    string `json:"skill_name" jsonschema:"The name of the skill."`
		ResourcePath string `json:"resource_path" jsonschema:"The path of the file in the skill's folder, such as references/guide.md, assets/template.txt or scripts/setup.sh."`
	}
	return functiontool.New(functiontool.Config{
		Name: s.cfg.Prefix + LoadSkillResource, Effect: tool.Read,
		Description: "Loads a file of a skill from its references/, assets/ or scripts/.",
	}, func(ctx tool.Context, in args) (*file, error) {
		switch {
		case in.SkillName == "":
			return nil, fail(MissingSkillName, "a skill's name is needed")
		case in.ResourcePath == "":
			return nil, fail(MissingResourcePath, "the path of a file of skill %.80q is needed", in.SkillName)
		}
		data, err := s.read(ctx, in.SkillName, in.ResourcePath)
		if err != nil {
			return nil, s.explain(ctx, err, in.SkillName, in.ResourcePath)
		}
		return shown(ctx, in.SkillName, in.ResourcePath, data)
	})
}

func (s *SkillToolset) read(ctx tool.Context, name, path string) ([]byte, error) {
	r, err := s.cfg.Source.LoadResource(ctx, name, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func shown(ctx tool.Context, name, path string, data []byte) (*file, error) {
	f := &file{SkillName: name, Path: path}
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		if len(data) > MaxText {
			return nil, fail(ResourceTooLarge, "%s is a text of %d bytes, more than the %d that can be shown", path, len(data), MaxText)
		}
		text := string(data)
		f.Content = &text
		return f, nil
	}
	f.MediaType, f.SizeBytes = mediaType(path, data), len(data)
	if len(data) <= MaxBinary {
		f.ContentBase64 = base64.StdEncoding.EncodeToString(data)
		return f, nil
	}
	if k, ok := ctx.(tool.Keeper); ok {
		if ref, err := k.Keep(data, f.MediaType); err == nil {
			f.Reference = &ref
			return f, nil
		}
	}
	return nil, fail(ResourceTooLarge, "%s is no text but %s of %d bytes, more than the %d that can be shown; scripts of the skill find it by its path", path, f.MediaType, len(data), MaxBinary)
}

// offices are types that look like archives from inside.
var offices = map[string]string{
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// mediaType goes by the content, so that it is the same on every machine.
func mediaType(name string, data []byte) string {
	found := http.DetectContentType(data)
	if office := offices[strings.ToLower(path.Ext(name))]; office != "" && found == "application/zip" {
		return office
	}
	return found
}
