/// Counts the answers that come after the answer to something sent later.
struct AnswerOrder: Sendable {
    private(set) var overtaken = 0
    private var latest = 0

    /// Takes in the answer to the ping or packet with this number.
    mutating func add(_ number: Int) {
        if number < latest { overtaken += 1 }
        latest = max(latest, number)
    }
}
