import COpenSSL
import NighCore

/// A code that one person reads out and another types, such as `7-crisp-otter-lamp`. It authorises one transfer.
///
/// The number only leads to the device that shows the code. The three words are the secret, 33 bits. They are never
/// sent, and nothing that is announced follows from them.
package struct OneTimeCode: Hashable, Sendable, CustomStringConvertible {
    /// The numbers that a code may have.
    package static let numbers = 1...999

    private static let wordCount = 3

    /// The number by which the devices find each other. It is announced.
    package let number: Int
    /// The indices of the words in the list.
    private let words: [Int]

    /// Creates a code with random words.
    package static func random(number: Int) -> OneTimeCode {
        precondition(numbers.contains(number))
        let words = SecretBytes.random(count: wordCount * MemoryLayout<UInt16>.size).withBytes { bytes in
            bytes.bindMemory(to: UInt16.self).map { Int($0) % (1 << CodeWords.bits) }
        }
        return OneTimeCode(number: number, words: words)
    }

    /// Reads a code as a person types it: in capitals or not, with hyphens or blanks, with at least the first four
    /// letters of each word. Throws an error that names the word it does not know.
    package init(_ text: String) throws(Fault) {
        let parts = text.split { $0 == "-" || $0 == " " || $0 == "_" || $0 == "." }
        guard let first = parts.first, let number = Int(first), Self.numbers.contains(number) else {
            throw .noNumber
        }
        guard parts.count == 1 + Self.wordCount else { throw .wrongCount(parts.count - 1) }
        var words: [Int] = []
        for part in parts.dropFirst() {
            guard let index = CodeWords.index(of: part) else { throw .unknownWord(String(part)) }
            words.append(index)
        }
        self.init(number: number, words: words)
    }

    private init(number: Int, words: [Int]) {
        self.number = number
        self.words = words
    }

    package var description: String {
        ([String(number)] + words.map { String(CodeWords.all[$0]) }).joined(separator: "-")
    }

    /// All words, for completion.
    package static var vocabulary: [Substring] { CodeWords.all }

    /// Why a text is no code.
    package enum Fault: Error, Equatable {
        case noNumber
        case wrongCount(Int)
        case unknownWord(String)
    }

    /// The number that both sides prove to know, derived from the code by scrypt. Takes some 50 ms.
    var key: SecretBytes {
        OpenSSLLifetime.extend()
        let key = SecretBytes(count: Self.keyByteCount)
        let (text, salt) = (description, Array("nigh code 1".utf8))
        let done = key.withBytes {
            EVP_PBE_scrypt(
                text, text.utf8.count, salt, salt.count, 1 << 14, 8, 1, 64 << 20,
                $0.bindMemory(to: UInt8.self).baseAddress, $0.count)
        }
        precondition(done == 1, "libcrypto has no memory for scrypt")
        return key
    }

    /// 64 bits more than the order of the curve has, so that the number is uniform modulo the order.
    private static let keyByteCount = 40
}

extension OneTimeCode.Fault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noNumber: "a code begins with a number from 1 to 999, as in 7-crisp-otter-lamp"
        case .wrongCount(let count): "a code has three words, and this one has \(count)"
        case .unknownWord(let word): "there is no word \"\(word)\" in codes"
        }
    }
}
