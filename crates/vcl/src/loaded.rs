//! A program that can be run: compiled once, shared by all workers, unchanging but for the state of its objects.
//!
//! Whoever runs it borrows it for the scope: the texts that it hands to the host are its own constants or in the scope's
//! arena.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::evaluation::compiled::Compiled;
use crate::evaluation::{compiler, evaluator};
use crate::host::{Health, Host};
use crate::house::House;
use crate::limits::{READ_FILE_BYTES_MAX, READ_FILES_MAX};
use crate::objects::Objects;
use crate::plain_values::BackendRef;
use crate::scope_arena::Arena;
use crate::source_files::Sources;
use crate::subroutine_verdicts::*;
use crate::subroutines::{Action, Method};
use crate::typed_program::{AclId, Backend, BackendId, Probe, Program};
use crate::vmods::directors::Search;
use crate::vmods::dynamic_vmod::DynamicBackends;
use crate::world::World;

type Files = HashMap<Box<[u8]>, Arc<[u8]>>;

/// A loaded program.
#[derive(Debug)]
pub struct Loaded {
    program: Program,
    sources: Sources,
    compiled: Compiled,
    objects: Objects,
    dynamic: DynamicBackends,
    /// What std.fileread has read, by path.
    files: Mutex<Files>,
}

/// A backend that a program made while it ran, by vmod dynamic.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicBackend {
    pub backend: Arc<Backend>,
    /// How often its name is looked up again.
    pub lookup_interval_s: f64,
    /// Only addresses in it are asked: see `Loaded::acl_allows`.
    pub allowed: Option<AclId>,
}

impl Loaded {
    /// Compiles a checked program, looks up the names in its ACLs, and runs vcl_init. The error is for people.
    pub fn load(program: Program, sources: Sources, world: &dyn World) -> Result<Arc<Loaded>, String> {
        let compiled = compiler::compile(&program, world)?;
        let objects = Objects::new(program.objects.len());
        let (dynamic, files) = (DynamicBackends::default(), Mutex::default());
        let loaded = Arc::new(Loaded { program, sources, compiled, objects, dynamic, files });
        let arena = Arena::default();
        match loaded.run(&House::new(&arena, world, &loaded.program), Method::Init) {
            Ending::Plain(Action::Ok) => {}
            Ending::Fail(why) => return Err(why.reason().to_owned()),
            other => return Err(other.out_of_place(Method::Init).reason().to_owned()),
        }
        Ok(loaded)
    }

    /// Runs vcl_fini: nobody runs the program any more. What goes wrong there has been logged.
    pub fn discard(&self, world: &dyn World) {
        let arena = Arena::default();
        drop(self.run(&House::new(&arena, world, &self.program), Method::Fini));
    }

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

    /// Is it none at all, or one of the program's that is called `none`?
    pub fn is_none(&self, of: BackendRef) -> bool {
        match of {
            BackendRef::None => true,
            BackendRef::Named(id) => self
                .backends()
                .get(id.index())
                .is_some_and(|backend| backend.endpoint.is_none() && !backend.is_elsewhere),
            BackendRef::Director(_) => false,
        }
    }

    /// `None` for a number of the program's own backends.
    pub fn dynamic_backend(&self, id: BackendId) -> Option<DynamicBackend> {
        self.dynamic.get(id.index().checked_sub(self.backends().len())?)
    }

    /// Whether the address is in the ACL.
    pub fn acl_allows(&self, acl: AclId, address: IpAddr) -> bool {
        self.compiled.acls[acl.index()].decide(address).0
    }

    /// For logs.
    pub fn backend_name(&self, of: BackendRef) -> Cow<'_, str> {
        match of {
            BackendRef::None => Cow::Borrowed("none"),
            BackendRef::Named(id) => match self.backends().get(id.index()) {
                Some(backend) => Cow::Borrowed(&backend.name),
                None => Cow::Owned(self.dynamic_backend(id).map(|made| made.backend.name.clone()).unwrap_or_default()),
            },
            BackendRef::Director(id) => {
                Cow::Borrowed(self.program.objects.get(id.index()).map_or("", |object| &object.name))
            }
        }
    }

    /// How many bytes of a request's body the program may want in vcl_recv, by std.cache_req_body: a subroutine does not wait,
    /// so the body must be there when it begins. `None`: it never asks for the body.
    pub fn request_body_bytes_usual(&self) -> Option<u64> {
        self.compiled.request_body_bytes
    }

    /// May the program ask for req.hash or bereq.hash, or does it choose by them?
    #[inline]
    pub fn asks_hash(&self) -> bool {
        self.compiled.asks_hash
    }

    /// May the program purge what lies under its request's hash?
    #[inline]
    pub fn purges_hash(&self) -> bool {
        self.compiled.purges_hash
    }

    /// Is the program a test that waits for something, so that nothing of it can be answered at once?
    #[inline]
    pub fn waits(&self) -> bool {
        self.compiled.waits
    }

    /// May the program say itself what a body goes through on its way to the client?
    #[inline]
    pub fn names_filters(&self) -> bool {
        self.compiled.names_filters
    }

    /// Has the program nothing of its own in this subroutine, so that what it says is known?
    #[inline]
    pub fn is_builtin(&self, method: Method) -> bool {
        self.compiled.untouched[method as usize]
    }

    // ---- Backends behind directors.

    /// The backend that is meant: what a director chooses now. `None` when there is none, or none that is healthy.
    pub fn resolve<'a, H: Host<'a>>(&'a self, host: &H, of: BackendRef) -> Option<BackendId> {
        Search { loaded: self, host, depth: 0 }.resolve(of)
    }

    /// Of a director: whether one behind it is healthy, and when one last changed.
    pub fn health<'a, H: Host<'a>>(&'a self, host: &H, of: BackendRef) -> Health {
        Search { loaded: self, host, depth: 0 }.health(of)
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(crate) fn dynamic_backends(&self) -> &DynamicBackends {
        &self.dynamic
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

    fn run<'a, H: Host<'a>>(&'a self, host: &H, method: Method) -> Ending<'a> {
        evaluator::run(self, &self.compiled, host, method)
    }

    /// The content of a file as it was when it was first asked for.
    pub(crate) fn file(&self, path: &[u8], world: &dyn World) -> Result<Arc<[u8]>, String> {
        let mut files = self.files.lock();
        if let Some(content) = files.get(path) {
            return Ok(Arc::clone(content));
        }
        let content: Arc<[u8]> = world.read_file(path)?.into();
        if content.len() > READ_FILE_BYTES_MAX {
            return Err(format!("it has more than {READ_FILE_BYTES_MAX} bytes (READ_FILE_BYTES_MAX)"));
        }
        if files.len() >= READ_FILES_MAX {
            return Err(format!("{READ_FILES_MAX} others have been read (READ_FILES_MAX)"));
        }
        files.insert(path.into(), Arc::clone(&content));
        Ok(content)
    }
}
