/// The answer to one `places` request that a ``CheckedTransport`` has passed on to the transport that it wraps.
///
/// `@unchecked Sendable`: the wrapped transport may answer on any thread. So `receive` first checks that it is on the
/// loop. Only the loop touches the state that changes.
final class PlacesAnswer: @unchecked Sendable {
    private let address: TransportAddress
    private let transport: CheckedTransport
    private let loop: any EventLoop
    private let found: @Sendable (Result<[TransportAddress], NighError>) -> Void
    private var isAnswered = false

    init(
        of address: TransportAddress, from transport: CheckedTransport, on loop: any EventLoop,
        _ found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        self.address = address
        self.transport = transport
        self.loop = loop
        self.found = found
    }

    /// Checks the answer and passes it on. Unlike any other report, it may come from inside the call.
    func receive(_ result: Result<[TransportAddress], NighError>) {
        do throws(ContractBreach) {
            guard try transport.checkMayReport("places", on: loop, alsoInsideCalls: true) else { return }
            guard !isAnswered else {
                throw ContractBreach(.placesToldOnce, "the places behind \(address) were reported twice")
            }
            try check(result)
            answer(result)
        } catch {
            transport.handleBreach(error, on: loop)
        }
    }

    /// Answers in place of a transport that was cut off.
    func fail(_ error: NighError) { answer(.failure(error)) }

    private func answer(_ result: Result<[TransportAddress], NighError>) {
        isAnswered = true
        transport.noteAnswered(self)
        found(result)
    }

    /// The address that was asked about is not checked: a transport may return it as its own only place, also if its
    /// scheme is another transport's.
    private func check(_ result: Result<[TransportAddress], NighError>) throws(ContractBreach) {
        let ledger = transport.ledger
        switch result {
        case .failure(let error): try ledger.check(error, "places")
        case .success(let places):
            for place in places where place != address { try ledger.check(place, "places") }
        }
    }
}
