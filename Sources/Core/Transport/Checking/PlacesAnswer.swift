/// What has come of a question for places that a ``CheckedTransport`` has passed on.
///
/// `@unchecked Sendable`: who answers may be on any thread, so the loop is looked at first; the rest is touched there.
final class PlacesAnswer: @unchecked Sendable {
    private let address: TransportAddress
    private let transport: CheckedTransport
    private let loop: any EventLoop
    private let found: @Sendable (Result<[TransportAddress], NighError>) -> Void
    private var hasCome = false

    init(
        of address: TransportAddress, from transport: CheckedTransport, on loop: any EventLoop,
        _ found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        self.address = address
        self.transport = transport
        self.loop = loop
        self.found = found
    }

    /// May be from inside the call, alone of all that is told.
    func came(_ result: Result<[TransportAddress], NighError>) {
        do throws(ContractBreach) {
            guard try transport.mayTell("places", on: loop, alsoInsideCalls: true) else { return }
            guard !hasCome else {
                throw ContractBreach(.placesToldOnce, "the places behind \(address) were told twice")
            }
            try check(result)
            hasCome = true
            found(result)
        } catch {
            transport.broke(error, on: loop)
        }
    }

    /// An address of another scheme that is given for its own only place says nothing new.
    private func check(_ result: Result<[TransportAddress], NighError>) throws(ContractBreach) {
        let ledger = transport.ledger
        switch result {
        case .failure(let error): try ledger.check(error, "places")
        case .success(let places):
            for place in places where place != address { try ledger.check(place, "places") }
        }
    }
}
