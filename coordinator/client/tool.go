package client

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Tool is what a model can call: the newest accepted declaration of a name.
type Tool struct {
	Name        string               `json:"name"`
	Digest      string               `json:"digest"`
	Declaration protocol.Declaration `json:"declaration"`
	AcceptedAt  time.Time            `json:"accepted_at"` // JetStream timestamp
	Worker      string               `json:"worker"`      // whose registration it was
	Seq         uint64               `json:"seq"`         // stream sequence in the bucket: higher is newer
}

// Tools lists the tools by name. A tool stays in the list while nobody serves it, until it is forgotten.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	return c.tools(ctx, "*")
}

// Tool returns one tool. It returns code unknown_tool with names that are close.
func (c *Client) Tool(ctx context.Context, name string) (Tool, error) {
	if err := protocol.CheckName(name); err != nil {
		return Tool{}, err
	}
	list, err := c.tools(ctx, name)
	if err != nil {
		return Tool{}, err
	}
	if len(list) == 0 {
		return Tool{}, unknownTool(name)
	}
	return list[0], nil
}

func unknownTool(name string) error {
	return protocol.Errorf(protocol.CodeUnknownTool, "no tool %q; toolfabric tools ls lists them, toolfabric worker exec --name %s adds one", name, name)
}

// Forget removes all accepted declarations of a tool, so that models are not offered it any more. A worker that still
// serves it brings it back with its next beat. It returns code unknown_tool.
func (c *Client) Forget(ctx context.Context, name string) error {
	if err := protocol.CheckName(name); err != nil {
		return err
	}
	keys, err := c.declarations(ctx, name)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return unknownTool(name)
	}
	for _, key := range keys {
		if _, err := c.cfg.Bus.Publish(ctx, natswire.DeleteKey(key.Subject)); err != nil {
			return err
		}
	}
	return nil
}

// declarations returns the living keys of a tool, or of all for "*", in the order they were accepted.
func (c *Client) declarations(ctx context.Context, name string) ([]natswire.Stored, error) {
	stored, err := c.cfg.Bus.Latest(ctx, c.cfg.Names.ToolsStream(), c.cfg.Names.ToolSubject(name, "*"))
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, err
	}
	return slices.DeleteFunc(stored, func(s natswire.Stored) bool { return natswire.KeyDeleted(s.Header) }), nil
}

func (c *Client) tools(ctx context.Context, name string) ([]Tool, error) {
	keys, err := c.declarations(ctx, name)
	if err != nil {
		return nil, err
	}
	newest := map[string]Tool{}
	for _, s := range keys {
		tool, digest, ok := c.cfg.Names.ParseTool(s.Subject)
		if !ok || newest[tool].Seq > s.Seq {
			continue
		}
		a, err := protocol.DecodeAccepted(s.Data)
		if err != nil {
			return nil, protocol.Wrap(err, protocol.CodeOf(err), "the accepted declaration of tool %s cannot be read; toolfabric tools forget %s removes it", tool, tool)
		}
		newest[tool] = Tool{
			Name: tool, Digest: digest, Declaration: a.Declaration, AcceptedAt: s.Time.UTC(), Worker: a.Worker, Seq: s.Seq,
		}
	}
	list := make([]Tool, 0, len(newest))
	for _, t := range newest {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
