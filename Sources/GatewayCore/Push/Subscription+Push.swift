import WidgetModel

extension Subscription {
    /// Returns the push category of the item.
    package func sort(in registration: ClientRegistration) -> PushCategory {
        switch place {
        case .widget: .timelines
        case .recommendations: .recommendations
        case .control(let index):
            .control(
                id: registration.controls.indices.contains(index)
                    ? registration.controls[index].id : "")
        case .activity(let index):
            .activity(
                id: registration.activities.indices.contains(index)
                    ? registration.activities[index].id : "")
        }
    }

    /// Whether only its own pushes confirm the item: a Live Activity with an address.
    package func isPushed(in registration: ClientRegistration) -> Bool {
        registration.isPushed(sort(in: registration))
    }

    /// The registered channel that its first push is sent to; `nil` for none.
    package func pushChannel(in registration: ClientRegistration) -> NotificationChannel? {
        guard
            registration.delivery.count > 1 || registration.delivery.first != .stream
                || registration.controls.contains(where: { $0.delivery != nil })
                || registration.activities.contains(where: { $0.delivery != nil })
        else { return nil }
        let own = sort(in: registration)
        return PushCategory.all(of: registration).first { $0.sort == own }?.addresses.first?.channel
    }
}
