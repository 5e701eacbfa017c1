//! Addresses: the interface's own, fixed or by DHCP, and those of names.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use magpie::channel::Reply;
use magpie::mem::OutOfMemory;
use magpie::sched::ProcessRef;
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::{dhcpv4, dns};
use smoltcp::wire::{DnsQueryType, IpAddress, IpCidr, Ipv4Cidr};

use super::run::{Stack, answer};
use crate::command::{Answer, Outcome};
use crate::config::{Addressing, Config};
use crate::error::Error;

/// So many lookups at a time.
const LOOKUPS: usize = 8;

/// Who waits for an address. A crash drops nothing, so not even the answer's end there: the process says that it has crashed. One that ends
/// otherwise may have passed the waiting on.
pub struct Asker {
    pub reply: Reply<Answer>,
    pub by: Option<ProcessRef>,
}

impl Asker {
    fn waits(&self) -> bool {
        self.reply.is_wanted() && !self.by.as_ref().is_some_and(|by| by.has_crashed())
    }
}

/// A lookup, and who waits for it.
pub struct Lookup {
    query: dns::QueryHandle,
    asker: Asker,
}

/// The sockets that the interface has for itself: for names, and for DHCP.
pub fn begin(
    config: &Config,
    interface: &mut Interface,
    sockets: &mut SocketSet<'static>,
) -> Result<(SocketHandle, Option<SocketHandle>), Error> {
    let mut queries = Vec::new();
    queries.try_reserve_exact(LOOKUPS).map_err(|_| OutOfMemory)?;
    queries.resize_with(LOOKUPS, || None);
    let names = sockets.add(dns::Socket::new(&[], queries));
    let Addressing::Fixed { address, prefix, gateway, names: server } = config.addressing else {
        return Ok((names, Some(sockets.add(dhcpv4::Socket::new()))));
    };
    if prefix > 32 || !can_be(address) || !gateway.is_none_or(can_be) {
        return Err(Error::NoSuchAddress);
    }
    set_address(interface, Some(Ipv4Cidr::new(address, prefix)));
    if let Some(gateway) = gateway {
        let _ = interface.routes_mut().add_default_ipv4_route(gateway);
    }
    if let Some(server) = server {
        sockets.get_mut::<dns::Socket<'_>>(names).update_servers(&[IpAddress::Ipv4(server)]);
    }
    Ok((names, None))
}

/// Whether a host can have it. smoltcp panics at others.
fn can_be(address: Ipv4Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
}

fn set_address(interface: &mut Interface, address: Option<Ipv4Cidr>) {
    interface.update_ip_addrs(|addresses| {
        addresses.clear();
        if let Some(address) = address {
            // There is room for more than one.
            let _ = addresses.push(IpCidr::Ipv4(address));
        }
    });
}

impl Stack {
    /// Another card, so perhaps another network: the server is asked again. Until it has answered there is no address, and connections are reset. What was known of others' cards is
    /// forgotten, which is a minute's wait otherwise where they have changed, too.
    pub(super) fn link_has_changed(&mut self) {
        // smoltcp forgets them whenever this is called.
        self.interface.update_ip_addrs(|_| {});
        if let Some(dhcp) = self.dhcp {
            self.sockets.get_mut::<dhcpv4::Socket<'_>>(dhcp).reset();
        }
    }

    pub(super) fn resolve(&mut self, name: &str, asker: Asker) {
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return answer(asker.reply, Ok(Outcome::Address { address, prefix: 32 }));
        }
        if self.lookups.len() >= LOOKUPS {
            // Those who have given up, or ended, leave their places.
            self.tend_addresses();
        }
        if self.lookups.len() >= LOOKUPS || self.lookups.try_reserve(1).is_err() {
            return answer(asker.reply, Err(Error::TooMany));
        }
        let socket = self.sockets.get_mut::<dns::Socket<'_>>(self.names);
        match socket.start_query(self.interface.context(), name, DnsQueryType::A) {
            Ok(query) => self.lookups.push(Lookup { query, asker }),
            Err(_) => answer(asker.reply, Err(Error::NoSuchName)),
        }
    }

    pub(super) fn say_address(&mut self, asker: Asker) {
        self.wants_address.retain(Asker::waits);
        if self.wants_address.try_reserve(1).is_err() {
            return answer(asker.reply, Err(Error::OutOfMemory));
        }
        self.wants_address.push(asker);
    }

    /// What the servers have said.
    pub(super) fn tend_addresses(&mut self) {
        if let Some(dhcp) = self.dhcp {
            self.tend_dhcp(dhcp);
        }
        if !self.wants_address.is_empty()
            && let Some(IpCidr::Ipv4(address)) = self.interface.ip_addrs().first().copied()
        {
            let outcome = |()| Outcome::Address { address: address.address(), prefix: address.prefix_len() };
            while let Some(asker) = self.wants_address.pop() {
                answer(asker.reply, Ok(outcome(())));
            }
        }
        let socket = self.sockets.get_mut::<dns::Socket<'_>>(self.names);
        let mut at = 0;
        while let Some(lookup) = self.lookups.get(at) {
            if !lookup.asker.waits() {
                socket.cancel_query(lookup.query);
                self.lookups.swap_remove(at);
                continue;
            }
            let found = match socket.get_query_result(lookup.query) {
                Err(dns::GetQueryResultError::Pending) => {
                    at += 1;
                    continue;
                }
                Err(dns::GetQueryResultError::Failed) => Err(Error::NoSuchName),
                Ok(addresses) => match addresses.first() {
                    Some(IpAddress::Ipv4(address)) => Ok(Outcome::Address { address: *address, prefix: 32 }),
                    None => Err(Error::NoSuchName),
                },
            };
            answer(self.lookups.swap_remove(at).asker.reply, found);
        }
    }

    fn tend_dhcp(&mut self, dhcp: SocketHandle) {
        let (address, router, server) = match self.sockets.get_mut::<dhcpv4::Socket<'_>>(dhcp).poll() {
            None => return,
            Some(dhcpv4::Event::Deconfigured) => (None, None, None),
            Some(dhcpv4::Event::Configured(found)) => (
                Some(found.address).filter(|address| can_be(address.address())),
                found.router.filter(|&router| can_be(router)),
                found.dns_servers.first().copied(),
            ),
        };
        // Renewed, it is the same: to set it again would forget the neighbours.
        if self.interface.ip_addrs().first().copied() != address.map(IpCidr::Ipv4) {
            set_address(&mut self.interface, address);
        }
        match router {
            Some(router) => {
                let _ = self.interface.routes_mut().add_default_ipv4_route(router);
            }
            None => {
                self.interface.routes_mut().remove_default_ipv4_route();
            }
        }
        let server = server.map(IpAddress::Ipv4);
        self.sockets.get_mut::<dns::Socket<'_>>(self.names).update_servers(server.as_slice());
    }
}
