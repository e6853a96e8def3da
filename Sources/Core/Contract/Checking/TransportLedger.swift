/// The history of a transport: the requests of the session, and the reports of the transport. The next report is
/// checked against it.
///
/// A value that knows no loop and calls nobody. It throws a ``ContractBreach`` when a rule is broken.
struct TransportLedger {
    private enum DialEnd {
        case reported, cancelled
    }

    private enum RouteStanding {
        /// Found, and not lost since.
        case reported
        /// Found before the search was begun again, or before the transport went down. It may be reported as found
        /// again, or as lost.
        case doubtful
    }

    /// How many ended dials are remembered. An outcome of an older one counts as the outcome of an unknown dial.
    static let endedDialsRemembered = 256

    let scheme: String
    private var isAdvertising = false
    private(set) var listens = false
    private var browsed: ServiceName?
    private var routes: [TransportAddress: RouteStanding] = [:]
    private var openDials: Set<DialID> = []
    private var endedDials: [DialID: DialEnd] = [:]
    private var endedInOrder: [DialID] = []

    init(scheme: String) { self.scheme = scheme }

    // MARK: Requests of the session

    mutating func advertise() { isAdvertising = true }

    mutating func stopAdvertising() { isAdvertising = false }

    mutating func browse(_ service: ServiceName) {
        browsed = service
        markRoutesDoubtful()
    }

    mutating func stopBrowsing() {
        browsed = nil
        routes = [:]
    }

    mutating func dial(_ dial: DialID) { openDials.insert(dial) }

    mutating func cancel(_ dial: DialID) {
        if openDials.remove(dial) != nil { note(dial, .cancelled) }
    }

    func isOpen(_ dial: DialID) -> Bool { openDials.contains(dial) }

    // MARK: Withdrawals when the transport is cut off

    /// Removes and returns one of the routes that the session knows; nil if there is none.
    mutating func takeRoute() -> TransportAddress? {
        let next = routes.keys.min { $0.value < $1.value }
        if let next { routes[next] = nil }
        return next
    }

    /// Removes and returns one of the dials whose outcome the session waits for; nil if there is none.
    mutating func takeDial() -> DialID? {
        let next = openDials.min { $0.number < $1.number }
        if let next { openDials.remove(next) }
        return next
    }

    // MARK: Reports of the transport

    mutating func found(_ sighting: Sighting) throws(ContractBreach) {
        try check(sighting, "routeFound")
        guard routes[sighting.address] != .reported else {
            throw ContractBreach(.routeFoundOnce, "routeFound at \(sighting.address), which was found before")
        }
        routes[sighting.address] = .reported
    }

    func changed(_ sighting: Sighting) throws(ContractBreach) {
        try check(sighting, "routeChanged")
        try checkIsFound(sighting.address, "routeChanged")
    }

    mutating func lost(_ address: TransportAddress) throws(ContractBreach) {
        try checkBrowses("routeLost")
        try check(address, "routeLost")
        try checkIsFound(address, "routeLost")
        routes[address] = nil
    }

    func known(_ address: TransportAddress) throws(ContractBreach) {
        try checkBrowses("addressKnown")
        try check(address, "addressKnown")
    }

    mutating func opened(_ dial: DialID?) throws(ContractBreach) {
        if let dial { return try end(dial, "pipeOpened") }
        guard isAdvertising else {
            throw ContractBreach(.inboundWhileAdvertising, "a pipe came in while nothing was advertised")
        }
    }

    mutating func failed(_ dial: DialID, _ error: NighError) throws(ContractBreach) {
        try check(error, "dialFailed")
        try end(dial, "dialFailed")
    }

    func advertised() throws(ContractBreach) {
        guard isAdvertising else {
            throw ContractBreach(
                .listeningWhileAdvertising, "advertised was reported while nothing was advertised")
        }
    }

    mutating func listens(at addresses: [TransportAddress]) throws(ContractBreach) {
        for address in addresses { try check(address, "listeningChanged") }
        guard isAdvertising || addresses.isEmpty else {
            throw ContractBreach(
                .listeningWhileAdvertising,
                "listeningChanged reported addresses while nothing was advertised")
        }
        listens = !addresses.isEmpty
    }

    /// Checks a new condition. Once a transport is down, the routes found before no longer count.
    mutating func became(_ condition: TransportCondition) throws(ContractBreach) {
        guard case .down(let error) = condition else { return }
        try check(error, "transportChanged")
        markRoutesDoubtful()
    }

    func check(_ error: NighError, _ event: String) throws(ContractBreach) {
        guard error.transport == scheme else {
            let named = error.transport.map { "the transport \"\($0)\"" } ?? "no transport"
            throw ContractBreach(.errorsCarryTheScheme, "the error of \(event) names \(named)")
        }
    }

    func check(_ address: TransportAddress, _ event: String) throws(ContractBreach) {
        guard address.scheme == scheme else {
            throw ContractBreach(.addressesCarryTheScheme, "\(event) reported the address \(address)")
        }
    }

    // MARK: Helpers

    private mutating func markRoutesDoubtful() {
        for address in routes.keys { routes[address] = .doubtful }
    }

    private func check(_ sighting: Sighting, _ event: String) throws(ContractBreach) {
        let service = try checkBrowses(event)
        try check(sighting.address, event)
        guard sighting.advertisement.service == service else {
            throw ContractBreach(
                .routeOfTheService,
                "\(event) reported the service \(sighting.advertisement.service), not \(service)")
        }
        if let quality = sighting.quality, !(0...1).contains(quality) {
            throw ContractBreach(.qualityInRange, "\(event) reported a quality of \(quality)")
        }
    }

    @discardableResult
    private func checkBrowses(_ event: String) throws(ContractBreach) -> ServiceName {
        guard let browsed else {
            throw ContractBreach(.routeWhileBrowsing, "\(event) was reported while nothing was browsed for")
        }
        return browsed
    }

    private func checkIsFound(_ address: TransportAddress, _ event: String) throws(ContractBreach) {
        guard routes[address] != nil else {
            throw ContractBreach(.routeFoundFirst, "\(event) at \(address), where no peer was found")
        }
    }

    private mutating func end(_ dial: DialID, _ event: String) throws(ContractBreach) {
        guard openDials.remove(dial) == nil else { return note(dial, .reported) }
        switch endedDials[dial] {
        case .reported:
            throw ContractBreach(
                .dialEndsOnce, "\(event) for dial \(dial.number), whose outcome was reported before")
        case .cancelled:
            throw ContractBreach(
                .dialQuietAfterCancel, "\(event) for dial \(dial.number), which was cancelled")
        case nil:
            throw ContractBreach(.dialIsKnown, "\(event) for dial \(dial.number), which was never made")
        }
    }

    private mutating func note(_ dial: DialID, _ end: DialEnd) {
        endedDials[dial] = end
        endedInOrder.append(dial)
        if endedInOrder.count > Self.endedDialsRemembered {
            endedDials[endedInOrder.removeFirst()] = nil
        }
    }
}
