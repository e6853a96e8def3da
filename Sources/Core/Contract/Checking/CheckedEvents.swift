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
        owner.relay("routeFound", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.found(sighting)
        } report: {
            $0.routeFound(sighting, by: owner)
        }
    }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        owner.relay("routeChanged", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.changed(sighting)
        } report: {
            $0.routeChanged(sighting, by: owner)
        }
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        owner.relay("routeLost", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.lost(address)
        } report: {
            $0.routeLost(address, by: owner)
        }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        owner.relay("addressKnown", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.known(address)
        } report: {
            $0.addressKnown(address, by: owner)
        }
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        owner.relayPipe(pipe, dial: dial, by: transport, on: loop)
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        owner.relayDialFailure(dial, error, by: transport, on: loop)
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        owner.relay("advertised", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.advertised()
        } report: {
            $0.advertised(as: name, by: owner)
        }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        owner.relay("advertisingFailed", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.check(error, "advertisingFailed")
        } report: {
            $0.advertisingFailed(error, by: owner)
        }
    }

    func browsingFailed(_ error: NighError, by transport: any Transport) {
        owner.relay("browsingFailed", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.check(error, "browsingFailed")
        } report: {
            $0.browsingFailed(error, by: owner)
        }
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        owner.relay("listeningChanged", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.listens(at: addresses)
        } report: {
            $0.listeningChanged(addresses, by: owner)
        }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        owner.relay("transportChanged", by: transport, on: loop) { ledger throws(ContractBreach) in
            try ledger.became(condition)
        } report: {
            $0.transportChanged(condition, by: owner)
        }
    }
}
