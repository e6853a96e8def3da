/// A pending departure: this side leaves as soon as everything that it sent is acknowledged.
struct Departure {
    var deadline: Moment
    var tokens: [CallToken]
}
