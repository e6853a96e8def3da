import NighCore

/// Knows which sessions advertise a service in a realm, and when this one announces itself. A machine without I/O.
///
/// A session announces itself when it begins, when something changes, and from time to time, so that others drop those
/// that have died. It says when it will do so again at the latest. The more sessions there are, the longer the pauses:
/// together they make at most 50 announcements a second. A session that begins to browse asks for announcements, and is
/// answered directly, which costs the others nothing.
///
/// A session that the broker does not find counts as gone. It may still be connected to a server that the other servers
/// have lost, so it is asked for a while whether it is back. Its next announcement may be too late for a conversation.
struct BrokerPresence {
    /// The most announcements that a realm carries in a second.
    static let announcementsPerSecond = 50
    /// The shortest pause between two announcements of one session.
    static let shortestPause = Moment.Span.seconds(30)
    /// How many sessions are remembered. Beyond it, new ones are counted but not reported.
    static let knownLimit = 1_024
    /// The most answers that this session gives in a second to sessions that ask for announcements.
    static let answersPerSecond = 20
    /// The time over which the answers of all sessions to one question are spread, at most.
    private static let longestDelay = Moment.Span.seconds(2)

    /// How long a session that was not found is asked, and how many sessions at once.
    private static let searchTime = Moment.Span.seconds(60)
    private static let searchLimit = 64
    private static let firstSearchPause = Moment.Span.seconds(1)
    private static let longestSearchPause = Moment.Span.seconds(4)

    private struct Search {
        var next: Moment
        var pause: Moment.Span
        let end: Moment
    }

    private struct Known {
        var sighting: Sighting
        var expires: Moment
    }

    /// Something to publish.
    enum Action: Hashable {
        /// Announces this session to all.
        case announce(again: Duration)
        /// Announces this session to one that has asked.
        case answer(BrokerReplyAddress, again: Duration)
        /// Asks one session whether it is there.
        case ask(BrokerAddress)
    }

    private let scheme: String
    private var random: SeededGenerator
    private var known: [BrokerAddress: Known] = [:]
    /// The sessions that were not found.
    private var searches: [BrokerAddress: Search] = [:]
    /// No session expires before this moment.
    private var firstExpiry: Moment?
    /// The announcements heard since `countedSince`, each with the pause behind it: how many sessions that makes.
    private var heardPauses: Int64 = 0
    private var countedSince: Moment
    private var population = 0
    private var isAdvertising = false
    private var nextAnnouncement: Moment?
    private var answers: [(replyAddress: BrokerReplyAddress, at: Moment)] = []
    private var answerCredit = Self.answersPerSecond
    private var answerCreditSince: Moment

    init(scheme: String, seed: UInt64, at now: Moment) {
        self.scheme = scheme
        random = SeededGenerator(seed: seed)
        countedSince = now
        answerCreditSince = now
    }

    /// How many sessions are known.
    var knownCount: Int { known.count }

    // MARK: This session

    /// Begins to announce this session, at once.
    mutating func beginAdvertising(at now: Moment) {
        isAdvertising = true
        nextAnnouncement = now
    }

    mutating func endAdvertising() {
        isAdvertising = false
        nextAnnouncement = nil
        answers = []
    }

    /// Announces this session again soon, because something has changed.
    mutating func announceAgain(at now: Moment) { if isAdvertising { nextAnnouncement = now } }

    /// Notes that another session asks for announcements.
    mutating func asked(by replyAddress: BrokerReplyAddress, at now: Moment) {
        if now - answerCreditSince >= .seconds(1) {
            answerCredit = Self.answersPerSecond
            answerCreditSince = now
        }
        guard isAdvertising, answerCredit > 0 else { return }
        answerCredit -= 1
        let longest = min(Self.longestDelay.nanoseconds, Int64(population) * 2_000_000)
        let delay = Int64.random(in: 0...max(longest, 1), using: &random)
        answers.append((replyAddress, now + Moment.Span(nanoseconds: delay)))
    }

    /// The pause until the next announcement, for as many sessions as are heard.
    private var pause: Moment.Span {
        let needed = Int64(population) * 1_000_000_000 / Int64(Self.announcementsPerSecond)
        return max(Self.shortestPause, Moment.Span(nanoseconds: needed))
    }

    // MARK: Others

    /// Notes an announcement, and returns the changes.
    mutating func heard(
        _ advertisement: Advertisement, from address: BrokerAddress, again: Duration, at now: Moment
    ) -> SightingChange? {
        count(again, at: now)
        searches[address] = nil
        let sighting = Sighting(
            address: TransportAddress(scheme: scheme, value: "\(address)"), advertisement: advertisement)
        // One announcement may be lost, and the next one late.
        let expires = now + Moment.Span(again * 2 + .seconds(5))
        let before = known[address]?.sighting
        guard before != nil || known.count < Self.knownLimit else { return nil }
        known[address] = Known(sighting: sighting, expires: expires)
        firstExpiry = firstExpiry.map { min($0, expires) } ?? expires
        guard let before else { return .found(sighting) }
        return before == sighting ? nil : .changed(sighting)
    }

    /// Notes that a session is gone, and returns whether it was known.
    mutating func lost(_ address: BrokerAddress) -> SightingChange? {
        searches[address] = nil
        return known.removeValue(forKey: address).map { .lost($0.sighting.address) }
    }

    /// Notes that the broker has not found a session. If it was known, it counts as gone, and is asked from now on
    /// whether it is back.
    mutating func missed(_ address: BrokerAddress, at now: Moment) -> SightingChange? {
        guard known[address] != nil else { return nil }
        let change = lost(address)
        if searches.count < Self.searchLimit {
            searches[address] = Search(
                next: now + Self.firstSearchPause, pause: Self.firstSearchPause, end: now + Self.searchTime)
        }
        return change
    }

    /// Forgets all sessions.
    mutating func forgetAll() {
        known = [:]
        searches = [:]
        population = 0
        heardPauses = 0
    }

    /// Estimates how many sessions there are: in a time of one pause, each announces itself once.
    private mutating func count(_ again: Duration, at now: Moment) {
        heardPauses += min(max(again.components.seconds, 1), 3_600)
        let elapsed = (now - countedSince).nanoseconds / 1_000_000_000
        population = max(population, known.count)
        guard elapsed >= 30 else { return }
        population = max(Int(heardPauses / elapsed), known.count)
        heardPauses = 0
        countedSince = now
    }

    // MARK: Time

    /// The moment at which something is due; nil if nothing is.
    var nextMoment: Moment? {
        [
            nextAnnouncement, answers.lazy.map(\.at).min(), firstExpiry,
            searches.values.lazy.map(\.next).min(),
        ].compactMap(\.self).min()
    }

    /// Returns the actions and losses that are due.
    mutating func due(at now: Moment) -> (actions: [Action], lost: [SightingChange]) {
        var actions: [Action] = []
        if let moment = nextAnnouncement, moment <= now {
            let next = random.jittered(pause)
            nextAnnouncement = now + next
            actions.append(.announce(again: Self.promised(next)))
        }
        let again = Self.promised(Moment.Span(nanoseconds: pause.nanoseconds / 4 * 5))
        for answer in answers where answer.at <= now {
            actions.append(.answer(answer.replyAddress, again: again))
        }
        answers.removeAll { $0.at <= now }
        for address in dueSearches(at: now) { actions.append(.ask(address)) }
        return (actions, expired(at: now))
    }

    /// Returns the sessions to ask now, and sets when to ask them again.
    private mutating func dueSearches(at now: Moment) -> [BrokerAddress] {
        guard !searches.isEmpty else { return [] }
        let due = searches.filter { $0.value.next <= now }.sorted { $0.key.description < $1.key.description }
        for (address, search) in due {
            let pause = min(search.pause + search.pause, Self.longestSearchPause)
            let next = Search(next: now + pause, pause: pause, end: search.end)
            searches[address] = next.next < next.end ? next : nil
        }
        return due.map(\.key)
    }

    private mutating func expired(at now: Moment) -> [SightingChange] {
        guard let firstExpiry, firstExpiry <= now else { return [] }
        let expired = known.filter { $0.value.expires <= now }.keys
        let changes = expired.sorted { $0.description < $1.description }.compactMap { lost($0) }
        self.firstExpiry = known.values.lazy.map(\.expires).min()
        return changes
    }

    /// Whole seconds, as announcements name them.
    private static func promised(_ span: Moment.Span) -> Duration {
        .seconds((span.nanoseconds + 999_999_999) / 1_000_000_000)
    }
}
