import Nigh

// Work for another device: `Primes serve` counts the primes below a number for those who ask, `Primes ask 100000` asks
// the first device that it meets.

enum Refusal: Error, Codable { case tooLarge(limit: Int) }

func countPrimes(_ end: Int, _ peer: Peer) async throws -> Int {
    print("\(peer.name) asks for the primes below \(end)")
    guard end <= 10_000_000 else { throw Refusal.tooLarge(limit: 10_000_000) }
    var count = 0
    for number in stride(from: 2, to: end, by: 1) {
        // The task is cancelled when nobody waits for the answer any more.
        if number % 1_000 == 0 { try Task.checkCancellation() }
        let isPrime = !stride(from: 2, through: Int(Double(number).squareRoot()), by: 1).contains {
            number % $0 == 0
        }
        if isPrime { count += 1 }
    }
    return count
}

let words = CommandLine.arguments.dropFirst()
let end = words.first == "ask" ? words.dropFirst().first.flatMap { Int($0) } : nil

do {
    try await withSession(
        service: "primes", name: words.first, transports: words.dropFirst(2).first, endsOnInterrupt: true
    ) { session in
        if end == nil { try session.answer("primes", with: countPrimes) }
        session.connectsAutomatically = true
        for await case .connected(let peer) in session.events {
            guard let end else { continue }
            do throws(NighError) {
                print(
                    "\(try await peer.ask("primes", end, for: Int.self)) primes below \(end), says \(peer.name)"
                )
            } catch {
                if case .tooLarge(let limit)? = error.value(of: Refusal.self) {
                    print("ask for \(limit) at most")
                } else {
                    print(error)
                }
            }
            break
        }
    }
} catch { print(error) }
