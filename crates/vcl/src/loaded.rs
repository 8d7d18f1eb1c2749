//! A program that can be run: compiled once, shared by all workers, unchanging but for the state of its objects.
//!
//! Whoever runs it borrows it for the scope: the texts that it hands to the host are its own constants or in the scope's
//! arena.

use std::sync::Arc;

use crate::host::{Health, Host};
use crate::plain_values::{BackendRef, Fault};
use crate::source_files::Sources;
use crate::subroutine_verdicts::*;
use crate::subroutines::Method;
use crate::typed_program::{Backend, BackendId, Probe, Program};
use crate::world::World;

/// A loaded program.
#[derive(Debug)]
pub struct Loaded {
    program: Program,
    sources: Sources,
}

/// A backend that a program made while it ran, by vmod dynamic.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicBackend {
    pub backend: Arc<Backend>,
    /// How often its name is looked up again.
    pub lookup_interval_s: f64,
}

impl Loaded {
    /// Compiles a checked program, looks up the names in its ACLs, and runs vcl_init. The error is for people.
    pub fn load(program: Program, sources: Sources, _world: &dyn World) -> Result<Arc<Loaded>, String> {
        Ok(Arc::new(Loaded { program, sources }))
    }

    /// Runs vcl_fini: nobody runs the program any more.
    pub fn discard(&self, _world: &dyn World) {}

    // ---- What it is made of.

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn backends(&self) -> &[Backend] {
        &self.program.backends
    }

    pub fn probes(&self) -> &[Probe] {
        &self.program.probes
    }

    /// Names of other programs that this one may hand requests to.
    pub fn labels(&self) -> &[String] {
        &self.program.labels
    }

    /// What `req.backend_hint` is at first.
    pub fn default_backend(&self) -> BackendRef {
        self.program.default_backend.map_or(BackendRef::None, BackendRef::Named)
    }

    /// `None` for a number of the program's own backends.
    pub fn dynamic_backend(&self, _id: BackendId) -> Option<DynamicBackend> {
        None
    }

    /// For logs.
    pub fn backend_name(&self, of: BackendRef) -> &str {
        match of {
            BackendRef::None => "none",
            BackendRef::Named(id) => self.backends().get(id.index()).map_or("", |backend| &backend.name),
            BackendRef::Director(id) => self.program.objects.get(id.index()).map_or("", |object| &object.name),
        }
    }

    /// How many bytes of a request's body should be read before vcl_recv, because the program looks at it there.
    pub fn request_body_bytes_wanted(&self) -> Option<u64> {
        None
    }

    // ---- Backends behind directors.

    /// The backend that is meant: what a director chooses now. `None` when there is none, or none that is healthy.
    pub fn resolve<'a, H: Host<'a>>(&'a self, _host: &H, of: BackendRef) -> Option<BackendId> {
        match of {
            BackendRef::Named(id) => Some(id),
            BackendRef::None | BackendRef::Director(_) => None,
        }
    }

    /// Of a director: whether one behind it is healthy, and when one last changed.
    pub fn health<'a, H: Host<'a>>(&'a self, host: &H, of: BackendRef) -> Health {
        match of {
            BackendRef::Named(id) => host.backend_health(id),
            BackendRef::None | BackendRef::Director(_) => Health { healthy: false, changed_s: 0.0 },
        }
    }

    // ---- The subroutines.

    pub fn recv<'a, H: Host<'a>>(&'a self, host: &H) -> RecvVerdict<'a> {
        self.run(host, Method::Recv).into()
    }

    pub fn pipe<'a, H: Host<'a>>(&'a self, host: &H) -> PipeVerdict<'a> {
        self.run(host, Method::Pipe).into()
    }

    pub fn pass<'a, H: Host<'a>>(&'a self, host: &H) -> PassVerdict<'a> {
        self.run(host, Method::Pass).into()
    }

    pub fn hash<'a, H: Host<'a>>(&'a self, host: &H) -> HashVerdict {
        self.run(host, Method::Hash).into()
    }

    pub fn purge<'a, H: Host<'a>>(&'a self, host: &H) -> PurgeVerdict<'a> {
        self.run(host, Method::Purge).into()
    }

    pub fn miss<'a, H: Host<'a>>(&'a self, host: &H) -> MissVerdict<'a> {
        self.run(host, Method::Miss).into()
    }

    pub fn hit<'a, H: Host<'a>>(&'a self, host: &H) -> HitVerdict<'a> {
        self.run(host, Method::Hit).into()
    }

    pub fn deliver<'a, H: Host<'a>>(&'a self, host: &H) -> DeliverVerdict<'a> {
        self.run(host, Method::Deliver).into()
    }

    pub fn synth<'a, H: Host<'a>>(&'a self, host: &H) -> SynthVerdict {
        self.run(host, Method::Synth).into()
    }

    pub fn backend_fetch<'a, H: Host<'a>>(&'a self, host: &H) -> BackendFetchVerdict<'a> {
        self.run(host, Method::BackendFetch).into()
    }

    pub fn backend_refresh<'a, H: Host<'a>>(&'a self, host: &H) -> BackendRefreshVerdict<'a> {
        self.run(host, Method::BackendRefresh).into()
    }

    pub fn backend_response<'a, H: Host<'a>>(&'a self, host: &H) -> BackendResponseVerdict<'a> {
        self.run(host, Method::BackendResponse).into()
    }

    pub fn backend_error<'a, H: Host<'a>>(&'a self, host: &H) -> BackendErrorVerdict {
        self.run(host, Method::BackendError).into()
    }

    fn run<'a, H: Host<'a>>(&'a self, _host: &H, method: Method) -> Ending<'a> {
        Ending::Fail(Fault::new(format!("{} cannot be run yet", method.name())))
    }
}
