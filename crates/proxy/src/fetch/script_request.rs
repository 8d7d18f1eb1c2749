//! What an application over FastCGI is asked that no other origin is: which script, with a body whose length is known.

use std::sync::Arc;

use message::Status;
use wire::{RequestBody, refusals};

use crate::answer_head::AnswerHead;
use crate::fetch::broken::Broken;
use crate::fetch::cgi_variables::ScriptCall;
use crate::fetch::client_link::ClientLink;
use crate::fetch::{Fetch, failed};
use crate::limits::FETCH_BYTES;
use crate::settings::{ListenAddress, RootSettings, RouteTarget};
use crate::static_files::finding::NotShown;
use crate::static_files::script_path::{self, ScriptPath};

impl Fetch {
    /// Finds out what of that is not known yet. Nothing, where the origin speaks another protocol.
    pub(super) async fn find_script(&mut self, client: &mut ClientLink<'_>) -> Result<(), Broken> {
        if self.origin().fastcgi().is_none() {
            return Ok(());
        }
        if self.script.is_none() {
            let found = self.look_for_script().await;
            let script = found.map_err(|why| Broken::Origin(failed::without_script(self.origin(), why)))?;
            self.script = Some(Arc::new(script));
        }
        if self.body == RequestBody::Chunked { self.read_body(client).await } else { Ok(()) }
    }

    /// The script of a request that is nobody's who has looked already: something stale is refreshed, or there is no root.
    async fn look_for_script(&self) -> Result<ScriptPath, NotShown> {
        let Some(root) = self.root_of_scripts() else {
            let index = self.origin().fastcgi().map(|fastcgi| fastcgi.settings.index.clone());
            return Ok(ScriptPath::whole(index.unwrap_or_default().into_bytes()));
        };
        let path = self.head.request().path.to_vec();
        let looking = tokio::task::spawn_blocking(move || script_path::of_fetch(&root, &path));
        looking.await.unwrap_or(Err(NotShown::Failed))
    }

    /// Of the route that the request belongs to.
    fn root_of_scripts(&self) -> Option<Arc<RootSettings>> {
        let RouteTarget::Root(root) = self.site.route_of(self.routed)?.target else { return None };
        Some(&self.site.files.roots[root]).filter(|root| root.scripts.is_some()).cloned()
    }

    /// CGI says how long a body is before it begins (RFC 3875 §4.1.2): one that does not say it itself is read first.
    async fn read_body(&mut self, client: &mut ClientLink<'_>) -> Result<(), Broken> {
        let ClientLink::Attached(downstream) = client else { return Ok(()) };
        if self.expects_continue && !downstream.has_begun_body() {
            let head = AnswerHead::new(Status(100));
            if !downstream.send_interim(self.head.version, head).await {
                return Err(Broken::ClientLeft);
            }
        }
        self.expects_continue = false;
        let bytes_max = self.site.settings.limits.fastcgi_chunked_body_bytes_max;
        let read = downstream.read_whole_body(bytes_max).await?;
        let body = read.ok_or(Broken::ClientFault(refusals::CGI_BODY_TOO_LARGE))?;
        self._held = self.core.shared.cache.account().charge(FETCH_BYTES + body.len());
        (self.body, self.carried) = (RequestBody::None, Some(body));
        Ok(())
    }

    /// The request as the application is sent it.
    pub(super) fn asked_of_script(&self) -> Vec<u8> {
        let (Some(fastcgi), Some(script)) = (self.origin().fastcgi(), &self.script) else { return Vec::new() };
        let root = self.root_of_scripts();
        let directory = root.as_ref().map(|root| root.directory.to_string_lossy());
        let document_root = fastcgi.settings.document_root.as_deref().or(directory.as_deref()).unwrap_or_default();
        self.asked().to_records(&ScriptCall {
            settings: &fastcgi.settings,
            script,
            document_root: document_root.trim_end_matches('/'),
            server_address: self.server_address(),
        })
    }

    /// Where we listen, if one of our addresses is one that others know us by. Whose connection it was must not decide: others get the
    /// answer, too.
    fn server_address(&self) -> Option<std::net::IpAddr> {
        self.site.settings.listeners.iter().find_map(|listener| match &listener.address {
            ListenAddress::Tcp(address) => Some(address.ip()).filter(|ip| !ip.is_unspecified()),
            ListenAddress::Unix(_) => None,
        })
    }
}
