//go:build tools

// Package kwok pins the fake kubelet. It has a module of its own because kwok
// compiles against older Kubernetes libraries than the control plane's.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
