// h2spec and what it is made of, pinned here because it has no go.mod of its own. ./setup builds it.
module h2spec-pinned

go 1.18

require (
	github.com/fatih/color v1.17.0
	github.com/spf13/cobra v1.8.1
	github.com/summerwind/h2spec v2.2.1+incompatible
	golang.org/x/net v0.30.0
)
