/// Receives the events of a wrapped transport for its ``CheckedTransport``, which checks them and passes them on.
///
/// A transport that breaks its contract may call this on any thread. That is safe, because all properties are
/// constants.
final class CheckedEvents: TransportEvents {
    private let owner: CheckedTransport
    private let loop: any EventLoop

    init(of owner: CheckedTransport, on loop: any EventLoop) {
        self.owner = owner
        self.loop = loop
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        owner.hear("routeFound", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.found(sighting)
        } tell: {
            $0.routeFound(sighting, by: owner)
        }
    }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        owner.hear("routeChanged", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.changed(sighting)
        } tell: {
            $0.routeChanged(sighting, by: owner)
        }
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        owner.hear("routeLost", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.lost(address)
        } tell: {
            $0.routeLost(address, by: owner)
        }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        owner.hear("addressKnown", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.known(address)
        } tell: {
            $0.addressKnown(address, by: owner)
        }
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        owner.hear(pipe, dial: dial, by: transport, on: loop)
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        owner.hearFailure(of: dial, error, by: transport, on: loop)
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        owner.hear("advertised", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.advertised()
        } tell: {
            $0.advertised(as: name, by: owner)
        }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        owner.hear("advertisingFailed", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.check(error, "advertisingFailed")
        } tell: {
            $0.advertisingFailed(error, by: owner)
        }
    }

    func browsingFailed(_ error: NighError, by transport: any Transport) {
        owner.hear("browsingFailed", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.check(error, "browsingFailed")
        } tell: {
            $0.browsingFailed(error, by: owner)
        }
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        owner.hear("listeningChanged", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.listens(at: addresses)
        } tell: {
            $0.listeningChanged(addresses, by: owner)
        }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        owner.hear("transportChanged", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.became(condition)
        } tell: {
            $0.transportChanged(condition, by: owner)
        }
    }
}
