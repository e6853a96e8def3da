import GameKit
import Testing

@Suite("A GKSessionError") struct ErrorTests {
    private func fail() throws {
        throw GKSessionError(.declinedError, userInfo: [NSLocalizedDescriptionKey: "full"])
    }

    @Test("is caught by its code, by its type and as NSError")
    func catching() throws {
        do { try fail() } catch GKSessionError.declinedError {}
        do { try fail() } catch let error as GKSessionError {
            #expect(error.code == .declinedError && error.errorCode == 30502)
            #expect(error.localizedDescription == "full")
        }
        do { try fail() } catch let error as NSError {
            #expect(error.domain == GKSessionErrorDomain && error.code == 30502)
        }
        let error: any Error = NSError(domain: GKSessionErrorDomain, code: 30508)
        #expect((error as? GKSessionError)?.code == .notConnectedError)
        #expect((NSError(domain: "other", code: 30508) as any Error) as? GKSessionError == nil)
        #expect(
            GKSessionError(_nsError: NSError(domain: GKSessionErrorDomain, code: 30201)).code
                == .connectivityError)
    }
}
